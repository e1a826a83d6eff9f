#pragma once

#include <string>

namespace holdfast::runner {

/// What the environment of a task's program says, by which its processes are found when nobody watches them any more.
inline std::string marker(const std::string& id) { return "HOLDFAST_TASK=" + id; }

}  // namespace holdfast::runner
