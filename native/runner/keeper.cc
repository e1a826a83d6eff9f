#include "keeper.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>

#include "marker.h"
#include "process_tree.h"
#include "supervisor.h"
#include "system.h"
#include "task_folder.h"

namespace holdfast::runner {
namespace {

sigset_t watched_signals() {
  sigset_t watched;
  ::sigemptyset(&watched);
  for (const int number : {SIGCHLD, SIGTERM, SIGINT}) ::sigaddset(&watched, number);
  return watched;
}

/// What outlives whoever started it: a session of its own, no terminal's signals, no folder in use.
void leave_parent() {
  ::setsid();  // fails when it has one
  ::signal(SIGHUP, SIG_IGN);
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGCHLD, SIG_DFL);
  const sigset_t watched = watched_signals();
  ::sigprocmask(SIG_BLOCK, &watched, nullptr);
  checked(::prctl(PR_SET_CHILD_SUBREAPER, 1), "subreaper");
  checked(::chdir("/"), "/");
}

std::string read_exactly(std::size_t size) {
  std::string bytes(size, '\0');
  for (std::size_t at = 0; at < size;) {
    const ssize_t length = ::read(STDIN_FILENO, bytes.data() + at, size - at);
    if (length < 0 && errno == EINTR) continue;
    if (length < 0) checked(-1, "task");
    if (length == 0) throw std::runtime_error("task: truncated");
    at += static_cast<std::size_t>(length);
  }
  return bytes;
}

template <typename T>
T valid(std::variant<T, DecodeError> decoded) {
  if (const auto* error = std::get_if<DecodeError>(&decoded)) throw std::runtime_error("task: " + error->problem);
  return std::move(std::get<T>(decoded));
}

/// Nobody is told any more that it starts, and whoever comes next may have found it not started.
void require_listener() {
  pollfd input{STDIN_FILENO, 0, 0};
  if (::poll(&input, 1, 0) > 0 && (input.revents & (POLLHUP | POLLERR)) != 0) throw std::runtime_error("who asked for it is gone");
}

void answer(std::string_view line) {
  if (::write(STDOUT_FILENO, line.data(), line.size()) < 0) return;  // nobody listens: it goes on
}

/// In the second process, to its end.
[[noreturn]] void run_supervisor(TaskFolder& folder, const Task& task, const Surroundings& around, pid_t keeper) {
  try {
    // Should the keeper be gone, the lock was free for a moment, and somebody may have called the task interrupted.
    if (!folder.lock(Role::supervisor) || ::getppid() != keeper) ::_exit(EXIT_FAILURE);
    checked(::prctl(PR_SET_CHILD_SUBREAPER, 1), "subreaper");  // not inherited
    answer("started\n");
    close_standard_streams();
    ExitRecord record;
    try {
      record = supervise(task, around);
    } catch (const std::system_error& error) {
      record.start_error = errno_name(error.code().value());
    }
    folder.finish(record);
    ::_exit(EXIT_SUCCESS);
  } catch (const std::exception&) {
    // Nobody reads what could be said here. Without `exit` the task was interrupted.
    ::_exit(EXIT_FAILURE);
  }
}

/// Until the supervisor's end; a request to end is its business.
void keep(pid_t supervisor) {
  const sigset_t watched = watched_signals();
  while (::waitpid(supervisor, nullptr, WNOHANG) == 0) {
    const int number = ::sigwaitinfo(&watched, nullptr);
    if (number == SIGTERM || number == SIGINT) ::kill(supervisor, SIGTERM);
  }
  end_children();
}

/// Whatever fails in here, nothing has run.
pid_t start_supervisor(TaskFolder& folder, const Task& task, mode_t umask, const std::string& marker) {
  try {
    const pid_t keeper = ::getpid();
    const pid_t supervisor = checked(::fork(), "fork");
    if (supervisor == 0) run_supervisor(folder, task, {folder, marker, umask}, keeper);
    return supervisor;
  } catch (...) {
    folder.unmark_started();
    throw;
  }
}

}  // namespace

int start(const std::string& runs, const std::string& id) {
  const mode_t umask = ::umask(0077);
  leave_parent();
  std::string message = read_exactly(valid(decode_task_header(read_exactly(kTaskHeaderSize))));
  Task task = valid(decode_task(message));
  TaskFolder folder = TaskFolder::make(runs, id);
  if (!folder.lock(Role::keeper) || folder.has_started()) return answer("already\n"), EXIT_SUCCESS;
  folder.write_files(task.files);
  task.files.clear();
  message = std::string();
  folder.reserve_exit();
  require_listener();
  if (!folder.mark_started()) return answer("already\n"), EXIT_SUCCESS;
  const pid_t supervisor = start_supervisor(folder, task, umask, marker(runs, id));
  close_standard_streams();
  keep(supervisor);
  return EXIT_SUCCESS;
}

}  // namespace holdfast::runner
