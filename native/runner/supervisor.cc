#include "supervisor.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <optional>

#include "capped_output.h"
#include "process_tree.h"
#include "program.h"
#include "system.h"

namespace holdfast::runner {
namespace {

net::UniqueFd open_signals() {
  sigset_t wanted;
  ::sigemptyset(&wanted);
  for (const int number : {SIGCHLD, SIGTERM, SIGINT}) ::sigaddset(&wanted, number);
  return net::UniqueFd(checked(::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK), "signalfd"));
}

class Timer {
 public:
  explicit Timer(std::chrono::milliseconds after) : fd_(checked(::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK), "timerfd")) {
    set(after);
  }

  void set(std::chrono::milliseconds after) {
    itimerspec when{};
    when.it_value.tv_sec = after.count() / 1'000;
    when.it_value.tv_nsec = after.count() % 1'000 * 1'000'000;
    checked(::timerfd_settime(fd_.get(), 0, &when, nullptr), "timerfd");
  }
  int fd() const { return fd_.get(); }
  bool has_fired() {
    std::uint64_t times = 0;
    return ::read(fd_.get(), &times, sizeof times) == sizeof times;
  }

 private:
  net::UniqueFd fd_;
};

class Supervisor {
 public:
  /// The program is started last: when this throws, nothing has run.
  Supervisor(const Task& task, const Surroundings& around, net::UniqueFd out, net::UniqueFd err)
      : signals_(open_signals()),
        timer_(task.timeout),
        program_(start_program(task, around.marker, around.umask)),
        out_(std::move(program_.out), std::move(out), task.max_output),
        err_(std::move(program_.err), std::move(err), task.max_output) {}

  ExitRecord run() {
    enum { on_its_own, timed_out, asked_to } ended = on_its_own;
    while (!has_ended()) {
      wait();
      // In this order: what has ended by now has ended by itself.
      if (has_ended()) break;
      if (was_asked_to_end_) ended = asked_to;
      else if (timer_.has_fired()) ended = timed_out;
      if (ended != on_its_own) break;
    }
    if (ended == on_its_own) wait_for_pipes();
    ExitRecord record = kill_all();
    const bool was_killed = record.signal == SIGKILL;
    record.timed_out = was_killed && ended == timed_out;
    record.cancelled = was_killed && ended == asked_to;
    return record;
  }

 private:
  /// Looks without reaping: while the program's zombie stands, the number of its group cannot be another's. Others are reaped.
  bool has_ended() {
    while (!has_ended_) {
      siginfo_t child{};
      if (::waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT) != 0 || child.si_pid == 0) break;
      if (child.si_pid == program_.pid) has_ended_ = true;
      else ::waitpid(child.si_pid, nullptr, WNOHANG);
    }
    return has_ended_;
  }

  void wait() {
    std::array<pollfd, 4> watched{
        {{signals_.get(), POLLIN, 0}, {timer_.fd(), POLLIN, 0}, {out_.fd(), POLLIN, 0}, {err_.fd(), POLLIN, 0}}};
    ::poll(watched.data(), watched.size(), -1);
    if (watched[2].revents != 0) out_.pump();
    if (watched[3].revents != 0) err_.pump();
    signalfd_siginfo signal{};
    while (::read(signals_.get(), &signal, sizeof signal) == sizeof signal) was_asked_to_end_ |= signal.ssi_signo != SIGCHLD;
  }

  void wait_for_pipes() {
    timer_.set(kPipePatience);
    while (!(out_.ended() && err_.ended()) && !was_asked_to_end_ && !timer_.has_fired()) wait();
  }

  ExitRecord kill_all() {
    // The whole group at once, so that none can escape by forking. The number is its own: the program, dead or not, has not been reaped.
    ::kill(-program_.pid, SIGKILL);
    const std::optional<int> status = end_children(program_.pid).status;
    ExitRecord record;
    if (const int error = start_failure(program_); error != 0) record.start_error = errno_name(error);
    // Without a status it hangs in the kernel, killed.
    else if (!status) record.signal = SIGKILL;
    else if (WIFEXITED(*status)) record.exit_code = WEXITSTATUS(*status);
    else record.signal = WTERMSIG(*status);
    record.out = out_.finish();
    record.err = err_.finish();
    return record;
  }

  net::UniqueFd signals_;
  Timer timer_;
  Program program_;
  CappedOutput out_;
  CappedOutput err_;
  bool was_asked_to_end_ = false;
  bool has_ended_ = false;
};

}  // namespace

ExitRecord supervise(const Task& task, const Surroundings& around) {
  return Supervisor(task, around, around.folder.make_output("stdout"), around.folder.make_output("stderr")).run();
}

}  // namespace holdfast::runner
