#include "worker.h"

#include <pthread.h>
#include <sys/socket.h>

#include <cerrno>
#include <csignal>
#include <string>
#include <system_error>

#include "listener.h"

namespace holdfast::proxy {
namespace {

constexpr auto kAcceptPause = std::chrono::milliseconds(100);
constexpr auto kSettleInterval = std::chrono::seconds(1);

}  // namespace

bool is_shortage(int error) noexcept { return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM || error == ENOSPC; }

void reset_on_close(int fd) noexcept {
  const linger now{1, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

Worker::Worker(std::size_t index, std::size_t most_pipes, Shared& shared)
    : index_(index),
      shared_(shared),
      loop_(shared.settings.busy_poll),
      scratch_(std::make_unique_for_overwrite<std::uint8_t[]>(kScratchSize)),
      pipes_(most_pipes) {}

/// Signals belong to the host program's threads.
void Worker::start() {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_setname_np(thread_.native_handle(), ("holdfast-px" + std::to_string(index_ % 1000)).c_str());
}

void Worker::run() {
  loop_.run();
  listeners_.clear();
  udp_.clear();
  if (ended_) ended_->arrive();
}

void Worker::join() noexcept {
  if (thread_.joinable()) thread_.join();
}

void Worker::take(UpdateBatch updates, std::shared_ptr<Countdown> taken) {
  loop_.post([this, updates = std::move(updates), taken = std::move(taken)]() mutable {
    for (const ListenerUpdate& update : *updates) apply(update);
    updates.reset();  // closes the sockets that nobody has any more, before it is said to be done
    taken->arrive();
  });
}

void Worker::apply(const ListenerUpdate& update) {
  if (udp_.apply(update)) return;
  std::shared_ptr<Listener>& slot = listeners_[update.id];
  if (!slot) slot = std::make_shared<Listener>(*this, update.id);
  const std::shared_ptr<Listener> listener = slot;
  listener->update(update);
  if (listener->gone()) forget(update.id);
}

/// Not at once: it may be the listener's own function that asks.
void Worker::forget(ListenerId id) {
  loop_.defer([this, id] {
    const auto found = listeners_.find(id);
    if (found != listeners_.end() && found->second->gone()) listeners_.erase(found);
  });
}

void Worker::begin_stop(std::chrono::milliseconds grace, std::shared_ptr<Countdown> ended, bool handed_over) {
  loop_.post([this, grace, ended = std::move(ended), handed_over] {
    if (ended) ended_ = ended;
    stop_within(grace, handed_over);
  });
}

void Worker::stop_within(std::chrono::milliseconds grace, bool handed_over) {
  stopping_ = true;
  for (const auto& [id, listener] : listeners_) listener->close();
  udp_.stop(handed_over);
  if (grace.count() == 0) cut_all();
  if (empty()) return loop_.stop();
  const auto deadline = net::Clock::now() + grace;
  if (stop_timer_ && stop_timer_.deadline <= deadline) return;
  loop_.cancel(stop_timer_);
  stop_timer_ = loop_.at(deadline, [this] {
    stop_timer_ = {};
    cut_all();
  });
}

void Worker::cut_all() {
  for (auto* connections : {&fresh_, &aging_, &settled_}) {
    while (!connections->empty()) static_cast<Connection&>(connections->front()).abort(Outcome::drained);
  }
  udp_.cut_all();
}

void Worker::connection_begun(Connection& connection) {
  fresh_.push_back(connection);
  if (!settle_timer_) settle();
}

void Worker::connection_ended() noexcept {
  if (stopping_ && empty()) loop_.stop();
}

/// Most connections end before they get here, and are spared the calls.
void Worker::settle() {
  aging_.for_each([this](WorkerHook& hook) {
    settled_.push_back(hook);
    static_cast<Connection&>(hook).settle();
  });
  fresh_.for_each([this](WorkerHook& hook) { aging_.push_back(hook); });
  if (aging_.empty()) return;
  settle_timer_ = loop_.after(kSettleInterval, [this] {
    settle_timer_ = {};
    settle();
  });
}

void Worker::dial_failed(ListenerId id, const net::SocketAddress& endpoint, const std::shared_ptr<EndpointCounters>& counters) {
  const auto ejection = counters->health.failed(settings());
  if (!ejection) return;
  sink()(Ejected{id, endpoint, false});
  loop_.after(ejection->lasts, [this, id, endpoint, counters, ejection = *ejection] {
    if (counters->health.give_back(ejection)) sink()(Ejected{id, endpoint, true});
  });
}

void Worker::dial_succeeded(ListenerId id, const net::SocketAddress& endpoint, EndpointCounters& counters) {
  if (counters.health.succeeded()) sink()(Ejected{id, endpoint, true});
}

void Worker::pause_accept(int error) {
  if (pause_) return;
  sink()(AcceptPaused{std::generic_category().message(error)});
  arm_pause();
}

void Worker::arm_pause() {
  pause_ = loop_.after(kAcceptPause, [this] {
    pause_ = {};
    std::vector<std::weak_ptr<Listener>> parked;
    parked.swap(parked_);
    for (const auto& weak : parked) {
      if (const auto listener = weak.lock()) listener->resume();
    }
  });
}

void Worker::resume_later(std::weak_ptr<Listener> listener) {
  parked_.push_back(std::move(listener));
  if (!pause_) arm_pause();
}

}  // namespace holdfast::proxy
