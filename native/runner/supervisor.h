#pragma once

#include <string>

#include "exit_record.h"
#include "task_codec.h"
#include "task_folder.h"

namespace holdfast::runner {

/// How long pipes are read that somebody holds open after the program's end.
constexpr std::chrono::seconds kPipePatience{5};

/// What a supervisor needs beside the task.
struct Surroundings {
  const TaskFolder& folder;
  /// NAME=value in the environment of the program and, unless they drop it, of all that it starts.
  std::string marker;
  /// That of the agent, for the program.
  mode_t umask;
};

/// Runs the task's program until its end, its deadline, or SIGTERM or SIGINT, then kills whatever is left of it, and says how it went. This
/// process must be a subreaper without children, with these signals and SIGCHLD blocked. The deadline counts the time that the machine
/// sleeps. A program that has ended by itself when its deadline or the signal is noticed has ended by itself. Throws
/// std::system_error when the program could not be started for want of something; one that the kernel does not execute is said by the record.
ExitRecord supervise(const Task& task, const Surroundings& around);

}  // namespace holdfast::runner
