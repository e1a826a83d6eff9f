#pragma once

#include <filesystem>
#include <string>

namespace holdfast::runner {

/// What the environment of a task's program says, by which its processes are found when nobody watches them any more: the task's folder, and
/// not the id alone, since another agent on this machine may have a task of the same name. Throws std::system_error.
inline std::string marker(const std::string& runs, const std::string& id) {
  return "HOLDFAST_TASK=" + (std::filesystem::canonical(runs) / id).string();
}

}  // namespace holdfast::runner
