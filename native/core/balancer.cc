#include "balancer.h"

#include <map>

namespace holdfast::proxy {

void Balancer::assign(Algorithm algorithm, const std::vector<Endpoint>& endpoints) {
  const bool first = entries_.empty();
  std::map<net::SocketAddress, std::int32_t> places;
  for (const Entry& entry : entries_) places.emplace(entry.address, entry.current);
  algorithm_ = algorithm;
  entries_.clear();
  total_ = 0;
  for (const Endpoint& endpoint : endpoints) {
    const auto place = places.find(endpoint.address);
    entries_.push_back({endpoint.address, endpoint.weight, place == places.end() ? 0 : place->second});
    total_ += endpoint.weight;
  }
  if (!first || entries_.empty()) return;
  for (std::uint32_t turn = 0; turn < start_; ++turn) choose_next(nullptr);
}

std::optional<std::size_t> Balancer::choose(const Excluded* excluded) {
  return algorithm_ == Algorithm::random ? choose_random(excluded) : choose_next(excluded);
}

std::optional<std::size_t> Balancer::choose_random(const Excluded* excluded) {
  std::int64_t total = total_;
  if (excluded != nullptr) {
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      if ((*excluded)(i)) total -= entries_[i].weight;
    }
  }
  if (total == 0) return std::nullopt;
  std::int64_t left = std::uniform_int_distribution<std::int64_t>(0, total - 1)(random_);
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (excluded != nullptr && (*excluded)(i)) continue;
    left -= entries_[i].weight;
    if (left < 0) return i;
  }
  return std::nullopt;
}

/// Smooth weighted round-robin: each turn every endpoint gains its weight, the richest one is taken and pays the sum.
std::optional<std::size_t> Balancer::choose_next(const Excluded* excluded) {
  std::optional<std::size_t> best;
  std::int32_t total = 0;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (excluded != nullptr && (*excluded)(i)) continue;
    Entry& entry = entries_[i];
    total += entry.weight;
    entry.current += entry.weight;
    if (!best || entry.current > entries_[*best].current) best = i;
  }
  if (best) entries_[*best].current -= total;
  return best;
}

}  // namespace holdfast::proxy
