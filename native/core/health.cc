#include "health.h"

#include <algorithm>

namespace holdfast::proxy {
namespace {

/// 2^4 times the first ejection's length is the longest.
constexpr std::uint32_t kMostDoublings = 4;

}  // namespace

std::optional<Health::Ejection> Health::failed(const Settings& settings) noexcept {
  if (settings.ejection_failures == 0) return std::nullopt;
  std::uint32_t turn = turn_.load(std::memory_order_relaxed);
  if (turn % 2 == 1) return std::nullopt;
  const std::uint32_t penalties = penalties_.load(std::memory_order_relaxed);
  const std::uint32_t most = penalties > 0 ? 1 : settings.ejection_failures;
  if (failures_.fetch_add(1, std::memory_order_relaxed) + 1 < most) return std::nullopt;
  if (!turn_.compare_exchange_strong(turn, turn + 1)) return std::nullopt;
  penalties_.store(penalties + 1, std::memory_order_relaxed);
  return Ejection{turn + 1, settings.ejection_return * (1 << std::min(penalties, kMostDoublings))};
}

bool Health::succeeded() noexcept {
  if (failures_.load(std::memory_order_relaxed) != 0) failures_.store(0, std::memory_order_relaxed);
  if (penalties_.load(std::memory_order_relaxed) != 0) penalties_.store(0, std::memory_order_relaxed);
  const std::uint32_t turn = turn_.load(std::memory_order_relaxed);
  return turn % 2 == 1 && end(turn);
}

bool Health::end(std::uint32_t turn) noexcept {
  if (!turn_.compare_exchange_strong(turn, turn + 1)) return false;
  failures_.store(0, std::memory_order_relaxed);
  return true;
}

}  // namespace holdfast::proxy
