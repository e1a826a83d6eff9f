#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "counter.h"
#include "dns_message.h"

namespace holdfast::dns {

/// Types that are counted apart, in this order; then others, and messages without a question that could be read: whoever asks could make as many
/// series as there are numbers.
constexpr std::array<std::uint16_t, 8> kCountedTypes{type::kA, type::kNs, type::kSoa, type::kPtr, type::kTxt, type::kAaaa, type::kSrv, type::kAny};
constexpr std::size_t kTypeRows = kCountedTypes.size() + 2;
/// NOERROR to REFUSED, BADVERS, others, and where nothing was sent.
constexpr std::size_t kRcodeColumns = 9;

inline std::size_t type_row(std::uint16_t type) noexcept {
  if (type == 0) return kTypeRows - 1;
  for (std::size_t i = 0; i < kCountedTypes.size(); ++i) {
    if (kCountedTypes[i] == type) return i;
  }
  return kTypeRows - 2;
}

inline std::size_t rcode_column(Rcode rcode) noexcept {
  if (rcode == Rcode::badvers) return 6;
  return rcode <= Rcode::refused ? static_cast<std::size_t>(rcode) : 7;
}
constexpr std::size_t kNothingSent = 8;

/// Written by one thread, read by anybody.
struct alignas(64) Counters {
  std::array<std::array<proxy::Counter, kRcodeColumns>, kTypeRows> answered;
  proxy::Counter cache_hits;
  proxy::Counter dropped_questions;
  proxy::Counter handed_up;
  proxy::Counter dropped_answers;
  proxy::Counter truncated;
  /// As they are now.
  std::atomic<std::uint64_t> names{0};
  std::atomic<std::uint64_t> cached{0};

  void count(std::uint16_t type, std::size_t column) noexcept { answered[type_row(type)][column].add(1); }
};

}  // namespace holdfast::dns
