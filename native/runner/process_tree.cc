#include "process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <memory>
#include <vector>

#include "unique_fd.h"

namespace holdfast::runner {
namespace {

using Clock = std::chrono::steady_clock;

constexpr timespec kBetweenLooks{0, 10'000'000};  // 10 ms

std::optional<pid_t> number(std::string_view text) {
  pid_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::vector<pid_t> processes() {
  std::vector<pid_t> found;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc"), ::closedir);
  if (folder == nullptr) return found;
  while (const dirent* entry = ::readdir(folder.get())) {
    if (const auto pid = number(entry->d_name)) found.push_back(*pid);
  }
  return found;
}

/// Empty when the process is gone, or not ours to look at.
std::string proc_file(pid_t pid, const char* name) {
  const net::UniqueFd file(::open(("/proc/" + std::to_string(pid) + "/" + name).c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  char buffer[16'384];
  while (file) {
    const ssize_t length = ::read(file.get(), buffer, sizeof buffer);
    if (length <= 0) break;
    text.append(buffer, static_cast<std::size_t>(length));
  }
  return text;
}

/// "12 (any (name)) S 1 …": what stands behind the last parenthesis is state and parent.
bool is_child_of(pid_t pid, pid_t parent) {
  const std::string text = proc_file(pid, "stat");
  const auto name_end = text.rfind(')');
  if (name_end == text.npos || text.size() < name_end + 4) return false;
  const std::string_view rest = std::string_view(text).substr(name_end + 4);
  return number(rest.substr(0, rest.find(' '))) == parent;
}

bool has_variable(pid_t pid, const std::string& variable) {
  const std::string text = proc_file(pid, "environ");
  const std::string wanted = variable + '\0';
  for (std::size_t at = 0; (at = text.find(wanted, at)) != text.npos; ++at) {
    if (at == 0 || text[at - 1] == '\0') return true;
  }
  return false;
}

void kill_children() {
  const pid_t self = ::getpid();
  for (const pid_t pid : processes()) {
    if (is_child_of(pid, self)) ::kill(pid, SIGKILL);
  }
}

/// How many there were.
std::size_t kill_marked(const std::string& variable) {
  std::size_t found = 0;
  for (const pid_t pid : processes()) {
    if (pid == ::getpid()) continue;
    const net::UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    if (!process || !has_variable(pid, variable)) continue;
    ++found;
    ::syscall(SYS_pidfd_send_signal, process.get(), SIGKILL, nullptr, 0);
  }
  return found;
}

}  // namespace

EndedChildren end_children(pid_t asked) {
  EndedChildren ended;
  sigset_t child_ended;
  ::sigemptyset(&child_ended);
  ::sigaddset(&child_ended, SIGCHLD);
  for (const auto end = Clock::now() + kKillPatience; Clock::now() < end;) {
    int status = 0;
    pid_t reaped = 0;
    while ((reaped = ::waitpid(-1, &status, WNOHANG)) > 0) {
      if (reaped == asked) ended.status = status;
    }
    if (reaped < 0 && errno == ECHILD) {
      ended.all = true;
      break;
    }
    kill_children();
    ::sigtimedwait(&child_ended, nullptr, &kBetweenLooks);
  }
  return ended;
}

bool end_marked(const std::string& variable) {
  for (const auto end = Clock::now() + kKillPatience; Clock::now() < end;) {
    if (kill_marked(variable) == 0) return true;
    ::nanosleep(&kBetweenLooks, nullptr);
  }
  return false;
}

}  // namespace holdfast::runner
