#include "event_loop.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <system_error>

namespace holdfast::net {
namespace {

constexpr int kBatch = 256;

int checked(int result, const char* what) {
  if (result < 0) throw std::system_error(errno, std::generic_category(), what);
  return result;
}

}  // namespace

EventLoop::EventLoop(Clock::duration busy_poll)
    : busy_poll_(busy_poll),
      epoll_(checked(::epoll_create1(EPOLL_CLOEXEC), "epoll_create1")),
      wake_(checked(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd")) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = nullptr;  // the mailbox
  checked(::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event), "epoll_ctl");
}

void EventLoop::post(Task task) {
  bool first;
  {
    const std::lock_guard lock(mutex_);
    first = mailbox_.empty();
    mailbox_.push_back(std::move(task));
  }
  if (first) ::eventfd_write(wake_.get(), 1);
}

void EventLoop::run() {
  while (!stopping_) {
    run_events();
    run_mailbox();
    run_timers();
    run_deferred();
  }
  // What was deferred may own memory (closed connections), so it is not left behind.
  while (!deferred_.empty()) run_deferred();
}

int EventLoop::add(int fd, std::uint32_t events, EventHandler& handler) noexcept {
  epoll_event event{};
  event.events = events;
  event.data.ptr = &handler;
  return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : errno;
}

int EventLoop::change(int fd, std::uint32_t events, EventHandler& handler) noexcept {
  epoll_event event{};
  event.events = events;
  event.data.ptr = &handler;
  return ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) == 0 ? 0 : errno;
}

void EventLoop::remove(int fd) noexcept { ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr); }

TimerId EventLoop::at(Clock::time_point deadline, Task task) {
  const TimerId id{deadline, ++sequence_};
  timers_.emplace(id, std::move(task));
  return id;
}

void EventLoop::cancel(TimerId& timer) noexcept {
  if (timer) timers_.erase(timer);
  timer = {};
}

/// Rounded up: a timer that is due in 0.4 ms is not waited for by spinning.
int EventLoop::timeout() const noexcept {
  if (!deferred_.empty()) return 0;
  if (timers_.empty()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(timers_.begin()->first.deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<decltype(left)>(left, 0, std::numeric_limits<int>::max()));
}

/// Polling is adaptive. It pays when the next event comes within the time that it may take, which is also seen from a sleep that was short;
/// it is halved each time when nothing came, so that an idle worker soon costs nothing.
int EventLoop::wait(epoll_event* events) noexcept {
  const int most = timeout();
  if (busy_poll_ == Clock::duration{} || most == 0) return ::epoll_wait(epoll_.get(), events, kBatch, most);
  if (poll_for_ > Clock::duration{}) {
    const int count = poll_busily(events);
    if (count != 0) return count;
    poll_for_ = poll_for_ > busy_poll_ / 8 ? poll_for_ / 2 : Clock::duration{};
  }
  const auto asleep = Clock::now();
  const int count = ::epoll_wait(epoll_.get(), events, kBatch, most);
  if (count > 0 && Clock::now() - asleep < busy_poll_) poll_for_ = busy_poll_;
  return count;
}

int EventLoop::poll_busily(epoll_event* events) noexcept {
  const auto until = Clock::now() + poll_for_;
  do {
    const int count = ::epoll_wait(epoll_.get(), events, kBatch, 0);
    if (count == 0) continue;
    poll_for_ = busy_poll_;
    return count;
  } while (Clock::now() < until);
  return 0;
}

void EventLoop::run_events() {
  std::array<epoll_event, kBatch> events;
  const int count = wait(events.data());
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    if (event.data.ptr == nullptr) {
      woken_ = true;
    } else {
      static_cast<EventHandler*>(event.data.ptr)->on_event(event.events);
    }
  }
}

void EventLoop::run_mailbox() {
  if (!woken_) return;
  woken_ = false;
  eventfd_t ignored;
  ::eventfd_read(wake_.get(), &ignored);
  std::vector<Task> tasks;
  {
    const std::lock_guard lock(mutex_);
    tasks.swap(mailbox_);
  }
  for (Task& task : tasks) {
    task();
    task = nullptr;  // what it owns is free before the next one runs
  }
}

void EventLoop::run_timers() {
  if (timers_.empty()) return;
  const auto now = Clock::now();
  while (!timers_.empty() && timers_.begin()->first.deadline <= now) {
    const auto node = timers_.extract(timers_.begin());
    node.mapped()();
  }
}

void EventLoop::run_deferred() {
  std::vector<Task> tasks;
  tasks.swap(deferred_);
  for (Task& task : tasks) task();
}

}  // namespace holdfast::net
