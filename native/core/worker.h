#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <thread>
#include <unordered_map>
#include <vector>

#include "connection.h"
#include "event_loop.h"
#include "events.h"
#include "intrusive_list.h"
#include "listener_update.h"

namespace holdfast::proxy {

/// Whether `error` says that descriptors or memory have run out.
bool is_shortage(int error) noexcept;
/// Makes the close of `fd` a reset.
void reset_on_close(int fd) noexcept;

/// A thread with its own view of the table. It shares nothing that changes with other workers; all it is told comes by its mailbox.
class Worker {
 public:
  static constexpr std::size_t kScratchSize = 64 * 1024;

  Worker(std::size_t index, const EventSink& sink);
  /// The thread must have been joined.
  ~Worker() = default;

  // The control side's.
  void start();
  void take(UpdateBatch updates, std::shared_ptr<Countdown> taken);
  /// Listeners close now, connections after `grace` at the latest; then the thread arrives at `ended` and ends.
  void begin_stop(std::chrono::milliseconds grace, std::shared_ptr<Countdown> ended);
  void join() noexcept;

  // For what lives on the worker's thread.
  std::size_t index() const noexcept { return index_; }
  net::EventLoop& loop() noexcept { return loop_; }
  const EventSink& sink() const noexcept { return sink_; }
  std::span<std::uint8_t> scratch() noexcept { return {scratch_.get(), kScratchSize}; }
  IntrusiveList<WorkerHook>& connections() noexcept { return connections_; }
  void connection_ended() noexcept;
  void forget(ListenerId id);

  bool accept_paused() const noexcept { return static_cast<bool>(pause_); }
  /// For 100 ms; without descriptors each attempt to accept would fail at once and be made again.
  void pause_accept(int error);
  void resume_later(std::weak_ptr<Listener> listener);

 private:
  void run();
  void apply(const ListenerUpdate& update);
  void stop_within(std::chrono::milliseconds grace);
  void cut_all();
  void arm_pause();

  const std::size_t index_;
  const EventSink& sink_;
  net::EventLoop loop_;
  std::unique_ptr<std::uint8_t[]> scratch_;
  IntrusiveList<WorkerHook> connections_;
  std::unordered_map<ListenerId, std::shared_ptr<Listener>> listeners_;
  std::vector<std::weak_ptr<Listener>> parked_;
  net::TimerId pause_;
  net::TimerId stop_timer_;
  bool stopping_ = false;
  std::shared_ptr<Countdown> ended_;
  std::thread thread_;
};

}  // namespace holdfast::proxy
