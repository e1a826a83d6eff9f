#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>

namespace holdfast::runner {

/// How long what was killed is waited for. SIGKILL takes milliseconds; a process that waits for a dead disk takes it when the disk answers,
/// and has done all it will do.
constexpr std::chrono::seconds kKillPatience{5};

struct EndedChildren {
  /// False when something was left after kKillPatience.
  bool all = false;
  /// As of waitpid(2), of the child that was asked about.
  std::optional<int> status;
};

/// Kills and reaps every child of this process, again and again: to a subreaper (prctl(2)) come the children of what was killed, in
/// whatever group or session they are. Children only: nobody else can reap them, so that a number cannot have become another process.
/// SIGCHLD must be blocked.
EndedChildren end_children(pid_t asked = 0);

/// Kills every process that has `variable` (NAME=value) in the environment that it was started with, and waits until there is none:
/// what a runner that was itself killed left behind. Each is held by a pidfd before it is looked at, so that a number cannot have
/// become another process. False when something is left after kKillPatience.
bool end_marked(const std::string& variable);

}  // namespace holdfast::runner
