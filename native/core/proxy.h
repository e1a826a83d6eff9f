#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <vector>

#include "control_table.h"
#include "events.h"
#include "settings.h"
#include "worker.h"

namespace holdfast::proxy {

struct ProxyInfo {
  std::size_t threads;
  std::size_t listener_budget;
  std::size_t listeners;
  std::uint64_t connections;
  std::uint64_t connection_limit;
};

/// The TCP proxy: worker threads that carry connections, and the control side, whose functions one thread calls and none of which waits
/// for a worker, but for `join`.
class Proxy {
 public:
  /// Starts the workers. @throws std::system_error
  Proxy(const Settings& settings, EventSink sink);
  /// Stops at once.
  ~Proxy();

  /// Opens and closes sockets before it returns. `taken` runs on a worker's thread when every worker has the new table. Not after `begin_stop`.
  std::vector<ListenResult> apply(const TableDelta& delta, std::function<void()> taken);

  ControlTable& table() noexcept { return table_; }
  const ControlTable& table() const noexcept { return table_; }
  ProxyInfo info() const noexcept;
  bool stopping() const noexcept { return stopping_; }

  /// Listeners close now, connections have `grace`. `ended` runs on a worker's thread when all have ended but for their return. Again: the shorter
  /// grace counts, the first `ended` runs. With `handed_over` another process has the sockets: nobody is refused at them.
  void begin_stop(std::chrono::milliseconds grace, std::function<void()> ended, bool handed_over = false);
  /// After `begin_stop`: waits for the threads.
  void join() noexcept;

 private:
  void emit(Event event);

  const EventSink sink_;
  Shared shared_;
  std::atomic<std::int64_t> quiet_until_{0};
  std::vector<std::unique_ptr<Worker>> workers_;
  ControlTable table_;
  bool stopping_ = false;
};

}  // namespace holdfast::proxy
