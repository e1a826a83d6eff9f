#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "affinity.h"
#include "counters.h"
#include "table.h"

namespace holdfast::proxy {

/// Who asks for an endpoint, and what was tried for him.
struct Request {
  /// Needed for affinity and source-hash; others leave it null.
  const net::SocketAddress* client = nullptr;
  std::span<const net::SocketAddress> tried;
  net::Clock::time_point now{};
};

/// Chooses among a listener's endpoints, for one worker. Indices are those of the endpoints it was last given.
///
/// Of the endpoints that were not tried those of tier 0 that are not ejected come first, then those of tier 1, and when all are ejected
/// those all the same, in the order of their tiers.
///
/// Workers share the load that least-connections compares (EndpointCounters), the table of affinities and the ejections; source-hash is the
/// same everywhere. Each has a round and random numbers of its own.
class Balancer {
 public:
  /// `start` is how many turns of the round-robin are taken as past, so that several workers do not begin with the same endpoint.
  explicit Balancer(std::uint32_t start) : random_(std::random_device{}()), start_(start) {}

  /// What remains among the endpoints keeps its place in the round: frequent changes do not favour the first ones. `counters` are in the
  /// order of the endpoints; `affinity` may be null.
  void assign(const ListenerConfig& config, const std::vector<std::shared_ptr<EndpointCounters>>& counters,
              std::shared_ptr<AffinityTable> affinity);
  void clear() noexcept;

  /// Null when every endpoint was tried.
  std::optional<std::size_t> pick(const Request& request);
  /// Whether requests must name the client.
  bool needs_client() const noexcept { return affinity_ != nullptr || algorithm_ == Algorithm::source_hash; }

 private:
  struct Entry {
    net::SocketAddress address;
    std::shared_ptr<EndpointCounters> counters;
    std::uint64_t hash;
    std::int32_t weight;
    std::int32_t current;
    std::uint8_t tier;
    /// For the pick that is going on: the lower the better.
    std::uint8_t rank;
  };

  /// The best rank that there is; kTried when there is nothing.
  std::uint8_t rank_all(const Request& request);
  std::optional<std::size_t> kept(const Request& request);
  std::size_t choose(const Request& request, std::uint8_t rank);
  std::size_t choose_random(std::uint8_t rank);
  std::size_t choose_next(std::uint8_t rank);
  std::size_t choose_least(std::uint8_t rank);
  std::size_t choose_by_hash(std::uint64_t client, std::uint8_t rank) const;

  std::minstd_rand random_;
  std::uint32_t start_;
  Algorithm algorithm_ = Algorithm::random;
  std::chrono::milliseconds affinity_lasts_{};
  std::shared_ptr<AffinityTable> affinity_;
  std::vector<Entry> entries_;
};

}  // namespace holdfast::proxy
