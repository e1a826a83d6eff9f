#pragma once

#include <sys/types.h>

#include <string>

#include "task_codec.h"
#include "unique_fd.h"

namespace holdfast::runner {

/// A program that was started, or was to be. Its number stays its own until this process reaps it.
struct Program {
  pid_t pid = 0;
  /// Read ends that do not block.
  net::UniqueFd out;
  net::UniqueFd err;
  /// Says an errno, when the program could not be executed.
  net::UniqueFd failure;
};

/// Runs it in a session and group of its own, with `umask`, no signal blocked or ignored, nothing to read, and `marker` in its
/// environment. It is killed when this process dies. Throws std::system_error when there is no process or no pipe to be had.
Program start_program(const Task& task, const std::string& marker, mode_t umask);

/// The errno with which it could not be executed; 0: it was. To be asked after its end.
int start_failure(const Program& program) noexcept;

}  // namespace holdfast::runner
