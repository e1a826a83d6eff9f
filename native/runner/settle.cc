#include "settle.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "marker.h"
#include "process_tree.h"
#include "system.h"
#include "task_folder.h"

namespace holdfast::runner {
namespace {

/// While a holder is not to be held by a pidfd (it has just died, or the kernel is older than 5.3), and while the supervisor is not there yet.
constexpr int kBetweenLooksMs = 20;

net::UniqueFd open_process(pid_t pid) { return net::UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))); }

void wait_for_end(pid_t pid, int at_most_ms) {
  const net::UniqueFd process = open_process(pid);
  pollfd watched{process.get(), POLLIN, 0};
  ::poll(&watched, 1, process ? at_most_ms : kBetweenLooksMs);
}

/// False while there is no supervisor to be asked.
bool ask_to_end(const TaskFolder& folder) {
  const pid_t pid = folder.holder(Role::supervisor);
  if (pid <= 0) return false;
  const net::UniqueFd process = open_process(pid);
  // The descriptor is the holder's only if that process still has the lock: its number may have become another's in between.
  if (folder.holder(Role::supervisor) != pid) return false;
  return checked(static_cast<int>(::syscall(SYS_pidfd_send_signal, process.get(), SIGTERM, nullptr, 0)), "supervisor") == 0;
}

}  // namespace

bool settle(const std::string& runs, const std::string& id, Wish wish) {
  const auto folder = TaskFolder::open(runs, id);
  if (!folder) return false;
  bool must_ask = wish == Wish::cancel;
  while (const pid_t pid = folder->holder()) {
    if (wish == Wish::look) return true;
    if (must_ask && ask_to_end(*folder)) must_ask = false;
    wait_for_end(pid, must_ask ? kBetweenLooksMs : -1);
  }
  end_marked(marker(runs, id));
  return false;
}

}  // namespace holdfast::runner
