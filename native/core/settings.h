#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace holdfast::proxy {

/// What holds for all listeners, from the start on.
struct Settings {
  /// 0: one per core, at least 2 and at most 8.
  std::size_t threads = 0;
  /// Open connections and flows in all; 0: what the limit of open files allows (descriptors.h).
  std::uint64_t max_connections = 0;
  /// How long a worker that has just been busy looks for the next event before it sleeps; 0: not at all.
  std::chrono::microseconds busy_poll{0};
  /// An endpoint whose dials fail this often in a row gets no new connection for a while; 0: never.
  std::uint32_t ejection_failures = 5;
  std::chrono::milliseconds ejection_return{10'000};
};

}  // namespace holdfast::proxy
