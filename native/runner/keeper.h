#pragma once

#include <string>

namespace holdfast::runner {

/// Reads a task from standard input, starts it as `<runs>/<id>` and stays until its end, in two processes: the supervisor does the work,
/// and its parent, the keeper, kills what is left should somebody kill the supervisor. Both hold a byte of the lock, so that it is free
/// only when nobody watches the task any more. The supervisor goes on without the keeper.
///
/// Says one line on standard output as soon as it is certain, and lets go of the standard streams: `started`, or `already` when another
/// runner has started it or is about to. Throws std::exception when nothing was started and nothing will be: the end of standard input
/// before the answer, that is the death of who asked, is such a case. Returns the exit code of this process.
int start(const std::string& runs, const std::string& id);

}  // namespace holdfast::runner
