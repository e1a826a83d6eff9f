#pragma once

#include <atomic>
#include <cstdint>

namespace holdfast::proxy {

/// Written by one worker, read by anybody. No locked instruction: there is one writer.
class Counter {
 public:
  void add(std::uint64_t amount) noexcept {
    value_.store(value_.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  }
  std::uint64_t value() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

}  // namespace holdfast::proxy
