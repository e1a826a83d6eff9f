#include "program.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "system.h"

namespace holdfast::runner {
namespace {

struct Pipe {
  net::UniqueFd read;
  net::UniqueFd write;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  checked(::pipe2(ends.data(), O_CLOEXEC), "pipe");
  Pipe pipe{net::UniqueFd(ends[0]), net::UniqueFd(ends[1])};
  checked(::fcntl(pipe.read.get(), F_SETFL, O_NONBLOCK), "pipe");
  return pipe;
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& each : texts) pointers.push_back(const_cast<char*>(each.c_str()));  // execve(2) does not write
  pointers.push_back(nullptr);
  return pointers;
}

/// `variables` without the marker's name, and the marker.
std::vector<std::string> with_marker(const std::vector<std::string>& variables, const std::string& marker) {
  const std::string name = marker.substr(0, marker.find('=') + 1);
  std::vector<std::string> all;
  for (const std::string& each : variables) {
    if (!each.starts_with(name)) all.push_back(each);
  }
  all.push_back(marker);
  return all;
}

void reset_signals() {
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

struct Start {
  pid_t parent;
  mode_t umask;
  const char* cwd;
  char* const* argv;
  char* const* env;
  int out;
  int err;
};

/// In the child. Returns only when it failed, with errno set.
void execute(const Start& start) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != start.parent) ::_exit(127);  // it died before that was in force
  ::setsid();
  ::umask(start.umask);
  // Standard input is /dev/null already, as the runner's own.
  if (::dup2(start.out, STDOUT_FILENO) < 0 || ::dup2(start.err, STDERR_FILENO) < 0) return;
  if (::chdir(start.cwd) != 0) return;
  reset_signals();
  ::execve(start.argv[0], start.argv, start.env);
}

}  // namespace

Program start_program(const Task& task, const std::string& marker, mode_t umask) {
  Pipe out = make_pipe();
  Pipe err = make_pipe();
  Pipe failure = make_pipe();
  const std::vector<std::string> variables = with_marker(task.env, marker);
  const std::vector<char*> argv = pointers(task.argv);
  const std::vector<char*> env = pointers(variables);
  const Start start{::getpid(), umask, task.cwd.c_str(), argv.data(), env.data(), out.write.get(), err.write.get()};
  const pid_t pid = checked(::fork(), "fork");
  if (pid == 0) {
    execute(start);
    const int error = errno;
    if (::write(failure.write.get(), &error, sizeof error) < 0) ::_exit(126);
    ::_exit(127);
  }
  return {pid, std::move(out.read), std::move(err.read), std::move(failure.read)};
}

int start_failure(const Program& program) noexcept {
  int error = 0;
  return ::read(program.failure.get(), &error, sizeof error) == sizeof error ? error : 0;
}

}  // namespace holdfast::runner
