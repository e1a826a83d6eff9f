#include "dns_waiting.h"

namespace holdfast::dns {

Waiting::Waiting() : places_(kMost) {
  free_.reserve(kMost);
  for (std::size_t i = kMost; i > 0; --i) free_.push_back(static_cast<std::uint32_t>(i - 1));
}

std::optional<std::uint64_t> Waiting::add(Asker asker) {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) return std::nullopt;
  const std::uint32_t index = free_.back();
  free_.pop_back();
  Place& place = places_[index];
  place.asker = std::move(asker);
  return ++place.turn * kMost + index;
}

std::optional<Asker> Waiting::take(std::uint64_t handle) {
  const std::lock_guard lock(mutex_);
  Place& place = places_[handle % kMost];
  if (place.turn != handle / kMost || !place.asker) return std::nullopt;
  std::optional<Asker> asker = std::move(place.asker);
  place.asker.reset();
  free_.push_back(static_cast<std::uint32_t>(handle % kMost));
  return asker;
}

std::size_t Waiting::size() const {
  const std::lock_guard lock(mutex_);
  return kMost - free_.size();
}

}  // namespace holdfast::dns
