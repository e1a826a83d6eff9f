#pragma once

#include <sys/epoll.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include "unique_fd.h"

namespace holdfast::net {

using Clock = std::chrono::steady_clock;

class EventHandler {
 public:
  virtual void on_event(std::uint32_t events) = 0;

 protected:
  ~EventHandler() = default;
};

/// A timer that is set; `false` when it is not.
struct TimerId {
  Clock::time_point deadline{};
  std::uint64_t sequence = 0;

  auto operator<=>(const TimerId&) const = default;
  explicit operator bool() const noexcept { return sequence != 0; }
};

/// One thread's events. A turn is: the descriptors that are ready, then the mailbox, then the timers, then what was deferred. So no
/// task of the latter three meets an event that was fetched before it ran.
class EventLoop {
 public:
  using Task = std::function<void()>;

  /// After an event the loop looks for the next one for up to `busy_poll` before it sleeps, as long as that pays. @throws std::system_error
  explicit EventLoop(Clock::duration busy_poll = {});

  /// From any thread. Tasks run in order; those that are posted after the loop has ended never run.
  void post(Task task);

  // The rest belongs to the loop's thread.

  /// Returns when `stop` was called in it.
  void run();
  void stop() noexcept { stopping_ = true; }

  /// 0 or an errno.
  int add(int fd, std::uint32_t events, EventHandler& handler) noexcept;
  /// 0 or an errno.
  int change(int fd, std::uint32_t events, EventHandler& handler) noexcept;
  void remove(int fd) noexcept;

  TimerId at(Clock::time_point deadline, Task task);
  TimerId after(Clock::duration delay, Task task) { return at(Clock::now() + delay, std::move(task)); }
  void cancel(TimerId& timer) noexcept;

  /// Runs `task` at the end of this turn; at the end of the next one when called from a deferred task.
  void defer(Task task) { deferred_.push_back(std::move(task)); }

 private:
  int timeout() const noexcept;
  int wait(epoll_event* events) noexcept;
  int poll_busily(epoll_event* events) noexcept;
  void run_events();
  void run_mailbox();
  void run_timers();
  void run_deferred();

  const Clock::duration busy_poll_;
  /// How long the next poll may last: nothing while polling does not pay.
  Clock::duration poll_for_{};
  UniqueFd epoll_;
  UniqueFd wake_;
  bool woken_ = false;
  bool stopping_ = false;
  std::mutex mutex_;
  std::vector<Task> mailbox_;
  std::vector<Task> deferred_;
  std::map<TimerId, Task> timers_;
  std::uint64_t sequence_ = 0;
};

}  // namespace holdfast::net
