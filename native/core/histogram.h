#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "counter.h"

namespace holdfast::proxy {

/// Upper bounds of the classes, microseconds; the last class has none.
constexpr std::size_t kBounds = 12;
using Bounds = std::array<std::uint64_t, kBounds>;

/// From a dial to the endpoint's answer: within a machine, a network, up to the lost first SYN that is sent again after 1 s and 3 s.
constexpr Bounds kDialBounds{100, 250, 500, 1'000, 2'500, 5'000, 10'000, 25'000, 100'000, 500'000, 1'000'000, 3'000'000};
/// From a connection's acceptance to its end: from one question to a session of hours.
constexpr Bounds kConnectionBounds{1'000,      5'000,      25'000,      100'000,     500'000,       1'000'000,
                                   5'000'000, 30'000'000, 120'000'000, 600'000'000, 3'600'000'000, 21'600'000'000};

/// How long something took, in classes. Written by one worker, read by anybody.
class Histogram {
 public:
  void observe(const Bounds& bounds, std::chrono::nanoseconds took) noexcept {
    const auto us = static_cast<std::uint64_t>(std::max<std::int64_t>(0, std::chrono::duration_cast<std::chrono::microseconds>(took).count()));
    // A value equal to a bound is in the bound's class, as Prometheus counts.
    const auto at = std::lower_bound(bounds.begin(), bounds.end(), us) - bounds.begin();
    classes_[static_cast<std::size_t>(at)].add(1);
    sum_us_.add(us);
  }

  const std::array<Counter, kBounds + 1>& classes() const noexcept { return classes_; }
  std::uint64_t sum_us() const noexcept { return sum_us_.value(); }

 private:
  std::array<Counter, kBounds + 1> classes_;
  Counter sum_us_;
};

/// One worker's share of a listener's times.
struct Times {
  Histogram dial;
  Histogram connection;
};

}  // namespace holdfast::proxy
