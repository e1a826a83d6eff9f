#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace holdfast::proxy {

/// How many sockets may listen: two thirds of the limit of open files less a reserve for everything else that the process opens.
std::size_t listener_budget() noexcept;

/// How many pipes all workers together may have open.
std::size_t pipe_budget() noexcept;

/// How many connections there may be beside `listening` sockets, at two descriptors each: what neither the reserve nor the pipes nor the next
/// listeners take.
std::uint64_t connection_budget(std::size_t listening) noexcept;

/// A number that all workers count up and down. One locked instruction, about 20 ns when cores contend; a connection costs 60 us.
class Gauge {
 public:
  /// The number before.
  std::uint64_t up() noexcept { return value_.fetch_add(1, std::memory_order_relaxed); }
  void down() noexcept { value_.fetch_sub(1, std::memory_order_relaxed); }
  /// False, and nothing is counted, when there are `most` already.
  bool up_to(std::uint64_t most) noexcept {
    if (up() < most) return true;
    down();
    return false;
  }
  std::uint64_t value() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

/// The connections and flows of all workers, and how many there may be. To be taken and released from any thread. A connection has two
/// descriptors and a flow one; so while descriptors set the limit, two flows count as one connection.
class Limits {
 public:
  /// `fixed` 0: the connection budget.
  explicit Limits(std::uint64_t fixed) noexcept : fixed_(fixed) { refresh(0); }

  bool take() noexcept { return open_.up_to(less(most(), flows_.value() / flows_in_one())); }
  void release() noexcept { open_.down(); }
  bool take_flow() noexcept { return flows_.up_to(less(most_flows(), open_.value() * flows_in_one())); }
  void release_flow() noexcept { flows_.down(); }

  std::uint64_t open() const noexcept { return open_.value() + flows_.value(); }
  std::uint64_t most_flows() const noexcept { return most() * flows_in_one(); }
  std::uint64_t most() const noexcept { return most_.load(std::memory_order_relaxed); }
  /// The control side's, when the number of listening sockets has changed.
  void refresh(std::size_t listening) noexcept;

 private:
  static std::uint64_t less(std::uint64_t all, std::uint64_t taken) noexcept { return all > taken ? all - taken : 0; }
  std::uint64_t flows_in_one() const noexcept { return fixed_ != 0 ? 1 : 2; }

  const std::uint64_t fixed_;
  std::atomic<std::uint64_t> most_{0};
  alignas(64) Gauge open_;
  alignas(64) Gauge flows_;
};

}  // namespace holdfast::proxy
