// holdfast-runner MODE RUNS ID: runs one program so that its end is known, whatever happens to whoever asked for it. RUNS is an absolute
// path, ID 64 hexadecimal digits. Exit code 0, or 1 with a line on standard error.
//
//   start    reads a task from standard input, see keeper.h
//   state    says `running` or `settled`
//   wait     until it has ended
//   cancel   kills it and waits
//
// After `settled`, `wait` and `cancel` no process of the task is left.

#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "keeper.h"
#include "settle.h"

namespace {

using namespace holdfast::runner;

bool is_id(const std::string& text) {
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return text.size() == 64 && std::all_of(text.begin(), text.end(), is_digit);
}

int run(const std::string& mode, const std::string& runs, const std::string& id) {
  if (mode == "start") return start(runs, id);
  // Who waits has no purpose without whoever asked.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const Wish wish = mode == "state" ? Wish::look : mode == "wait" ? Wish::wait : Wish::cancel;
  std::puts(settle(runs, id, wish) ? "running" : "settled");
  return EXIT_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc == 4 ? argv[1] : "";
  if ((mode != "start" && mode != "state" && mode != "wait" && mode != "cancel") || argv[2][0] != '/' || !is_id(argv[3])) {
    std::fputs("usage: holdfast-runner start|state|wait|cancel RUNS ID\n", stderr);
    return 2;
  }
  // A lock that whoever started the agent holds must not last as long as the task. Kernels before 5.9 do not know the call.
  ::syscall(SYS_close_range, STDERR_FILENO + 1, ~0u, 0);
  try {
    return run(mode, argv[2], argv[3]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return EXIT_FAILURE;
  }
}
