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
#include "flow.h"
#include "budget.h"
#include "listener_update.h"
#include "pipe_pool.h"
#include "settings.h"
#include "udp_relay.h"

namespace holdfast::proxy {

/// Whether `error` says that descriptors or memory have run out.
bool is_shortage(int error) noexcept;
/// Makes the close of `fd` a reset.
void reset_on_close(int fd) noexcept;

/// What all workers have in common; outlives them.
struct Shared {
  Settings settings;
  Limits limits;
  EventSink sink;
};

/// A thread with its own view of the table. All it is told comes by its mailbox; what it shares with other workers is counted by atomics
/// (ListenerCounters, EndpointCounters, Limits) or asked once per connection (AffinityTable).
class Worker {
 public:
  static constexpr std::size_t kScratchSize = 64 * 1024;

  Worker(std::size_t index, std::size_t most_pipes, Shared& shared);
  /// The thread must have been joined.
  ~Worker() = default;

  // The control side's.
  void start();
  void take(UpdateBatch updates, std::shared_ptr<Countdown> taken);
  /// Listeners close now, connections after `grace` at the latest; then the thread arrives at `ended` and ends.
  void begin_stop(std::chrono::milliseconds grace, std::shared_ptr<Countdown> ended, bool handed_over);
  void join() noexcept;

  // For what lives on the worker's thread.
  std::size_t index() const noexcept { return index_; }
  net::EventLoop& loop() noexcept { return loop_; }
  const EventSink& sink() const noexcept { return shared_.sink; }
  const Settings& settings() const noexcept { return shared_.settings; }
  Limits& limits() noexcept { return shared_.limits; }
  std::span<std::uint8_t> scratch() noexcept { return {scratch_.get(), kScratchSize}; }
  PumpAids pump_aids() noexcept { return {scratch(), pipes_}; }
  PipePool& pipes() noexcept { return pipes_; }
  /// `connection` is asked to settle down when it has lasted for a second or two.
  void connection_begun(Connection& connection);
  void connection_ended() noexcept;
  /// What a dial says of an endpoint: it may be ejected, or return.
  void dial_failed(ListenerId id, const net::SocketAddress& endpoint, const std::shared_ptr<EndpointCounters>& counters);
  void dial_succeeded(ListenerId id, const net::SocketAddress& endpoint, EndpointCounters& counters);
  void forget(ListenerId id);

  bool accept_paused() const noexcept { return static_cast<bool>(pause_); }
  /// For 100 ms; without descriptors each attempt to accept would fail at once and be made again.
  void pause_accept(int error);
  void resume_later(std::weak_ptr<Listener> listener);

 private:
  void run();
  void apply(const ListenerUpdate& update);
  void stop_within(std::chrono::milliseconds grace, bool handed_over);
  void cut_all();
  bool empty() const noexcept { return fresh_.empty() && aging_.empty() && settled_.empty() && udp_.empty(); }
  void settle();
  void arm_pause();

  const std::size_t index_;
  Shared& shared_;
  net::EventLoop loop_;
  std::unique_ptr<std::uint8_t[]> scratch_;
  PipePool pipes_;
  /// Connections by age: of this second, of the one before, and the others.
  IntrusiveList<WorkerHook> fresh_;
  IntrusiveList<WorkerHook> aging_;
  IntrusiveList<WorkerHook> settled_;
  net::TimerId settle_timer_;
  std::unordered_map<ListenerId, std::shared_ptr<Listener>> listeners_;
  std::vector<std::weak_ptr<Listener>> parked_;
  UdpRelay udp_{*this};
  net::TimerId pause_;
  net::TimerId stop_timer_;
  bool stopping_ = false;
  std::shared_ptr<Countdown> ended_;
  std::thread thread_;
};

}  // namespace holdfast::proxy
