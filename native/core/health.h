#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "settings.h"

namespace holdfast::proxy {

/// Passive health of an endpoint, shared by all workers. Dials that fail several times in a row eject it; it returns after a while, on
/// probation: the next failure ejects it again, for twice as long, up to 16 times; a dial that succeeds clears everything.
class Health {
 public:
  /// One ejection; what ends it names it, so that it does not end a later one.
  struct Ejection {
    std::uint32_t turn;
    std::chrono::milliseconds lasts;
  };

  bool ejected() const noexcept { return turn_.load(std::memory_order_relaxed) % 2 == 1; }
  /// Goes up whenever it is ejected or returns.
  std::uint32_t turn() const noexcept { return turn_.load(std::memory_order_relaxed); }

  /// The ejection, when this failure is what ejects it: of several workers one is told.
  std::optional<Ejection> failed(const Settings& settings) noexcept;
  /// True when it was ejected until now: it was dialled for want of another.
  bool succeeded() noexcept;
  /// The time of `ejection` is over. False when it had ended before.
  bool give_back(const Ejection& ejection) noexcept { return end(ejection.turn); }
  /// A withdrawn endpoint that comes back is a new one.
  void reset() noexcept { succeeded(); }

 private:
  bool end(std::uint32_t turn) noexcept;

  /// Odd while ejected.
  std::atomic<std::uint32_t> turn_{0};
  std::atomic<std::uint32_t> failures_{0};
  std::atomic<std::uint32_t> penalties_{0};
};

}  // namespace holdfast::proxy
