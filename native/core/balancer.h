#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <vector>

#include "table.h"

namespace holdfast::proxy {

/// Chooses among a listener's endpoints, for one worker. Indices are those of the endpoints it was last given.
class Balancer {
 public:
  using Excluded = std::function<bool(std::size_t)>;

  /// `start` is how many turns of the round-robin are taken as past, so that several workers do not begin with the same endpoint.
  explicit Balancer(std::uint32_t start) : random_(std::random_device{}()), start_(start) {}

  /// What remains among `endpoints` keeps its place in the round: frequent changes do not favour the first ones.
  void assign(Algorithm algorithm, const std::vector<Endpoint>& endpoints);

  std::optional<std::size_t> pick() { return choose(nullptr); }
  /// Never one for which `excluded` is true.
  std::optional<std::size_t> pick(const Excluded& excluded) { return choose(&excluded); }

 private:
  struct Entry {
    net::SocketAddress address;
    std::int32_t weight;
    std::int32_t current;
  };

  std::optional<std::size_t> choose(const Excluded* excluded);
  std::optional<std::size_t> choose_random(const Excluded* excluded);
  std::optional<std::size_t> choose_next(const Excluded* excluded);

  std::minstd_rand random_;
  std::uint32_t start_;
  Algorithm algorithm_ = Algorithm::random;
  std::vector<Entry> entries_;
  std::int64_t total_ = 0;
};

}  // namespace holdfast::proxy
