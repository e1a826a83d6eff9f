#pragma once

#include <atomic>
#include <cstdint>
#include <new>
#include <vector>

#include "budget.h"
#include "counter.h"
#include "health.h"
#include "histogram.h"

namespace holdfast::proxy {

/// How a connection ended.
enum class Outcome : std::uint8_t { completed, failed, refused, reset, drained };
constexpr std::size_t kOutcomes = 5;

/// One worker's share of a listener's counters, on cache lines of its own.
struct alignas(64) ListenerBlock {
  Counter accepted;
  Counter ended[kOutcomes];
  Counter bytes_in;
  Counter bytes_out;
  Counter dial_failures;
  /// Of the refused ones, those that met a limit.
  Counter limited;
  /// UDP: flows that gave way to newer ones, and datagrams that could not be passed on.
  Counter evicted;
  Counter dropped;

  ListenerBlock() = default;
  ListenerBlock(const ListenerBlock&) = delete;
  ListenerBlock& operator=(const ListenerBlock&) = delete;
  ~ListenerBlock() { delete times_.load(std::memory_order_relaxed); }

  /// For its worker. Made when the first connection needs it: 10,000 idle listeners would take 4 MB. Null when there is no memory.
  Times* times() noexcept {
    Times* times = times_.load(std::memory_order_relaxed);
    if (times == nullptr) times_.store(times = new (std::nothrow) Times, std::memory_order_release);
    return times;
  }
  /// For readers: null before the first.
  const Times* measured() const noexcept { return times_.load(std::memory_order_acquire); }

  /// Differs whenever one of them does: none ever goes down.
  std::uint64_t sum() const noexcept {
    std::uint64_t total = accepted.value() + bytes_in.value() + bytes_out.value() + dial_failures.value() + limited.value() +
                          evicted.value() + dropped.value();
    for (const Counter& one : ended) total += one.value();
    return total;
  }

 private:
  std::atomic<Times*> times_{nullptr};
};

struct alignas(64) EndpointBlock {
  Counter opened;
  Counter closed;
};

/// One block per worker. Shared by the control side and the connections that count on it, whichever lasts longer.
template <typename Block>
class Counters {
 public:
  explicit Counters(std::size_t workers) : blocks_(workers) {}

  Block& of(std::size_t worker) noexcept { return blocks_[worker]; }

  template <typename Select>
  std::uint64_t sum(Select select) const noexcept {
    std::uint64_t total = 0;
    for (const Block& block : blocks_) total += select(block).value();
    return total;
  }
  const std::vector<Block>& blocks() const noexcept { return blocks_; }

 private:
  std::vector<Block> blocks_;
};

/// What all workers know of a listener together.
struct ListenerCounters : Counters<ListenerBlock> {
  using Counters::Counters;
  alignas(64) Gauge open;
};

/// What all workers know of an endpoint together.
struct EndpointCounters : Counters<EndpointBlock> {
  using Counters::Counters;
  /// Connections to it and dials of it.
  alignas(64) Gauge load;
  Health health;
};

/// `opened` less `closed`, read in an order that cannot give less than nothing.
inline std::uint64_t active_connections(const EndpointCounters& counters) noexcept {
  const std::uint64_t closed = counters.sum([](const EndpointBlock& block) -> const Counter& { return block.closed; });
  const std::uint64_t opened = counters.sum([](const EndpointBlock& block) -> const Counter& { return block.opened; });
  return opened > closed ? opened - closed : 0;
}

}  // namespace holdfast::proxy
