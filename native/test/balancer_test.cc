#include "balancer.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace holdfast::proxy {
namespace {

std::vector<Endpoint> endpoints(const std::vector<int>& weights) {
  std::vector<Endpoint> made;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    made.push_back({net::SocketAddress::loopback(static_cast<std::uint16_t>(i + 1)), static_cast<std::uint8_t>(weights[i]), 0});
  }
  return made;
}

std::string sequence(Balancer& balancer, int picks) {
  std::string text;
  for (int i = 0; i < picks; ++i) text += static_cast<char>('a' + balancer.pick().value());
  return text;
}

TEST(Balancer, NothingToChooseFrom) {
  for (const auto algorithm : {Algorithm::random, Algorithm::round_robin}) {
    Balancer balancer(3);
    EXPECT_EQ(balancer.pick(), std::nullopt);
    balancer.assign(algorithm, {});
    EXPECT_EQ(balancer.pick(), std::nullopt);
  }
}

TEST(Balancer, RoundRobinIsSmooth) {
  Balancer balancer(0);
  balancer.assign(Algorithm::round_robin, endpoints({5, 1, 1}));
  EXPECT_EQ(sequence(balancer, 14), "aabacaaaabacaa");
}

TEST(Balancer, WorkersBeginAtDifferentEndpoints) {
  std::string first;
  for (std::uint32_t worker = 0; worker < 4; ++worker) {
    Balancer balancer(worker);
    balancer.assign(Algorithm::round_robin, endpoints({1, 1, 1}));
    first += sequence(balancer, 1);
  }
  EXPECT_EQ(first, "abca");
}

TEST(Balancer, RoundRobinGoesOnWhereItWasWhenTheTableChanges) {
  Balancer balancer(0);
  std::string text;
  for (int i = 0; i < 9; ++i) {
    balancer.assign(Algorithm::round_robin, endpoints({1, 1, 1}));
    text += sequence(balancer, 1);
  }
  EXPECT_EQ(text, "abcabcabc");
}

TEST(Balancer, RandomFollowsTheWeights) {
  Balancer balancer(0);
  balancer.assign(Algorithm::random, endpoints({70, 20, 10}));
  std::map<std::size_t, int> seen;
  for (int i = 0; i < 30'000; ++i) ++seen[balancer.pick().value()];
  // Five standard deviations of a binomial are at most 1.4 % of 30,000.
  EXPECT_NEAR(seen[0], 21'000, 420);
  EXPECT_NEAR(seen[1], 6'000, 420);
  EXPECT_NEAR(seen[2], 3'000, 420);
}

TEST(Balancer, ExcludedOnesAreNotChosenUntilNoneIsLeft) {
  for (const auto algorithm : {Algorithm::random, Algorithm::round_robin}) {
    Balancer balancer(0);
    balancer.assign(algorithm, endpoints({1, 100, 3, 50}));
    std::set<std::size_t> tried;
    for (int i = 0; i < 4; ++i) {
      EXPECT_TRUE(tried.insert(balancer.pick([&](std::size_t index) { return tried.contains(index); }).value()).second);
    }
    EXPECT_EQ(balancer.pick([&](std::size_t index) { return tried.contains(index); }), std::nullopt);
  }
}

}  // namespace
}  // namespace holdfast::proxy
