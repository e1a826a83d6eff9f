#include "balancer.h"

#include <algorithm>
#include <map>

#include "rendezvous.h"

namespace holdfast::proxy {
namespace {

constexpr std::uint8_t kEjected = 2;
constexpr std::uint8_t kTried = 4;

}  // namespace

void Balancer::assign(const ListenerConfig& config, const std::vector<std::shared_ptr<EndpointCounters>>& counters,
                      std::shared_ptr<AffinityTable> affinity) {
  const bool first = entries_.empty();
  std::map<net::SocketAddress, std::int32_t> places;
  for (const Entry& entry : entries_) places.emplace(entry.address, entry.current);
  algorithm_ = config.algorithm;
  affinity_lasts_ = config.affinity;
  affinity_ = std::move(affinity);
  entries_.clear();
  for (std::size_t i = 0; i < config.endpoints.size(); ++i) {
    const Endpoint& endpoint = config.endpoints[i];
    const auto place = places.find(endpoint.address);
    entries_.push_back({endpoint.address, counters[i], hash_endpoint(endpoint.address), endpoint.weight,
                        place == places.end() ? 0 : place->second, endpoint.tier, 0});
  }
  if (!first || entries_.empty()) return;
  const std::uint8_t rank = rank_all({});
  for (std::uint32_t turn = 0; turn < start_; ++turn) choose_next(rank);
}

void Balancer::clear() noexcept {
  entries_.clear();
  affinity_.reset();
}

std::optional<std::size_t> Balancer::pick(const Request& request) {
  const std::uint8_t rank = rank_all(request);
  if (rank == kTried) return std::nullopt;
  if (affinity_ == nullptr) return choose(request, rank);
  if (const auto index = kept(request)) return index;
  const std::size_t index = choose(request, rank);
  affinity_->put(*request.client, entries_[index].address, request.now);
  return index;
}

std::uint8_t Balancer::rank_all(const Request& request) {
  std::uint8_t best = kTried;
  for (Entry& entry : entries_) {
    const bool tried = std::find(request.tried.begin(), request.tried.end(), entry.address) != request.tried.end();
    entry.rank = tried ? kTried : static_cast<std::uint8_t>(entry.tier + (entry.counters->health.ejected() ? kEjected : 0));
    best = std::min(best, entry.rank);
  }
  return best;
}

/// A client stays where it is in spite of its endpoint's tier, but not with one that is ejected.
std::optional<std::size_t> Balancer::kept(const Request& request) {
  const auto endpoint = affinity_->find(*request.client, request.now, affinity_lasts_);
  if (!endpoint) return std::nullopt;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].address == *endpoint && entries_[i].rank < kEjected) return i;
  }
  return std::nullopt;
}

std::size_t Balancer::choose(const Request& request, std::uint8_t rank) {
  switch (algorithm_) {
    case Algorithm::round_robin:
      return choose_next(rank);
    case Algorithm::least_connections:
      return choose_least(rank);
    case Algorithm::source_hash:
      return choose_by_hash(hash_client(*request.client), rank);
    case Algorithm::random:
      break;
  }
  return choose_random(rank);
}

std::size_t Balancer::choose_random(std::uint8_t rank) {
  std::int64_t total = 0;
  for (const Entry& entry : entries_) total += entry.rank == rank ? entry.weight : 0;
  std::int64_t left = std::uniform_int_distribution<std::int64_t>(0, total - 1)(random_);
  std::size_t i = 0;
  for (; i + 1 < entries_.size(); ++i) {
    if (entries_[i].rank != rank) continue;
    left -= entries_[i].weight;
    if (left < 0) break;
  }
  return i;
}

/// Smooth weighted round-robin: each turn every endpoint gains its weight, the richest one is taken and pays the sum.
std::size_t Balancer::choose_next(std::uint8_t rank) {
  std::size_t best = entries_.size();
  std::int32_t total = 0;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    Entry& entry = entries_[i];
    if (entry.rank != rank) continue;
    total += entry.weight;
    entry.current += entry.weight;
    if (best == entries_.size() || entry.current > entries_[best].current) best = i;
  }
  entries_[best].current -= total;
  return best;
}

/// The least load per weight after this connection has come; chance decides among equals.
std::size_t Balancer::choose_least(std::uint8_t rank) {
  std::size_t best = entries_.size();
  std::uint64_t best_load = 0;
  std::uint32_t equals = 0;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].rank != rank) continue;
    const std::uint64_t load = entries_[i].counters->load.value() + 1;
    // load / weight against best_load / best weight, without a division.
    const auto left = best == entries_.size() ? 0 : load * static_cast<std::uint64_t>(entries_[best].weight);
    const auto right = best == entries_.size() ? 1 : best_load * static_cast<std::uint64_t>(entries_[i].weight);
    if (left > right) continue;
    equals = left < right ? 1 : equals + 1;
    if (left == right && random_() % equals != 0) continue;
    best = i;
    best_load = load;
  }
  return best;
}

std::size_t Balancer::choose_by_hash(std::uint64_t client, std::uint8_t rank) const {
  std::size_t best = 0;
  double best_score = -1;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].rank != rank) continue;
    const double score = rendezvous_score(client, entries_[i].hash, static_cast<std::uint32_t>(entries_[i].weight));
    if (score <= best_score) continue;
    best = i;
    best_score = score;
  }
  return best;
}

}  // namespace holdfast::proxy
