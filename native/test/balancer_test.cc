#include "balancer.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace holdfast::proxy {
namespace {

constexpr Algorithm kAll[] = {Algorithm::random, Algorithm::round_robin, Algorithm::least_connections, Algorithm::source_hash};
constexpr Settings kSettings{};

net::SocketAddress client(std::uint32_t number) {
  net::SocketAddress address;
  for (std::size_t i = 0; i < 4; ++i) address.bytes[i] = static_cast<std::uint8_t>(number >> (24 - 8 * i));
  address.port = static_cast<std::uint16_t>(number * 7);
  return address;
}

/// Endpoints 127.0.0.1:1, :2 and so on, of these weights, in one worker.
struct Choice {
  explicit Choice(Algorithm algorithm, const std::vector<int>& weights, std::uint32_t worker = 0) : balancer(worker) {
    config.algorithm = algorithm;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      config.endpoints.push_back({net::SocketAddress::loopback(static_cast<std::uint16_t>(i + 1)), static_cast<std::uint8_t>(weights[i]), 0});
      counters.push_back(std::make_shared<EndpointCounters>(1));
    }
    assign();
  }

  void assign() { balancer.assign(config, counters, affinity); }
  std::optional<std::size_t> pick(std::uint32_t from = 1, std::span<const net::SocketAddress> tried = {}) {
    address = client(from);
    return balancer.pick({&address, tried, now});
  }
  std::string sequence(int picks) {
    std::string text;
    for (int i = 0; i < picks; ++i) text += static_cast<char>('a' + pick().value());
    return text;
  }
  void eject(std::size_t index) {
    for (std::uint32_t i = 0; i < kSettings.ejection_failures; ++i) counters[index]->health.failed(kSettings);
  }

  ListenerConfig config;
  std::vector<std::shared_ptr<EndpointCounters>> counters;
  std::shared_ptr<AffinityTable> affinity;
  Balancer balancer;
  net::SocketAddress address;
  net::Clock::time_point now{};
};

TEST(Balancer, NothingToChooseFrom) {
  for (const auto algorithm : kAll) {
    EXPECT_EQ(Choice(algorithm, {}).pick(), std::nullopt);
    EXPECT_EQ(Balancer(3).pick({}), std::nullopt);
  }
}

TEST(Balancer, RoundRobinIsSmooth) { EXPECT_EQ(Choice(Algorithm::round_robin, {5, 1, 1}).sequence(14), "aabacaaaabacaa"); }

TEST(Balancer, WorkersBeginAtDifferentEndpoints) {
  std::string first;
  for (std::uint32_t worker = 0; worker < 4; ++worker) first += Choice(Algorithm::round_robin, {1, 1, 1}, worker).sequence(1);
  EXPECT_EQ(first, "abca");
}

TEST(Balancer, RoundRobinGoesOnWhereItWasWhenTheTableChanges) {
  Choice choice(Algorithm::round_robin, {1, 1, 1});
  std::string text;
  for (int i = 0; i < 9; ++i) {
    choice.assign();
    text += choice.sequence(1);
  }
  EXPECT_EQ(text, "abcabcabc");
}

TEST(Balancer, RandomAndSourceHashFollowTheWeights) {
  for (const auto algorithm : {Algorithm::random, Algorithm::source_hash}) {
    Choice choice(algorithm, {70, 20, 10});
    std::map<std::size_t, int> seen;
    for (std::uint32_t i = 0; i < 30'000; ++i) ++seen[choice.pick(i).value()];
    // Five standard deviations of a binomial are at most 1.4 % of 30,000.
    EXPECT_NEAR(seen[0], 21'000, 420);
    EXPECT_NEAR(seen[1], 6'000, 420);
    EXPECT_NEAR(seen[2], 3'000, 420);
  }
}

TEST(Balancer, TriedOnesAreNotChosenUntilNoneIsLeft) {
  for (const auto algorithm : kAll) {
    Choice choice(algorithm, {1, 100, 3, 50});
    std::vector<net::SocketAddress> tried;
    std::set<std::size_t> seen;
    for (int i = 0; i < 4; ++i) {
      const std::size_t index = choice.pick(1, tried).value();
      EXPECT_TRUE(seen.insert(index).second);
      tried.push_back(choice.config.endpoints[index].address);
    }
    EXPECT_EQ(choice.pick(1, tried), std::nullopt);
  }
}

TEST(Balancer, LeastConnectionsFillsUpByWeight) {
  Choice choice(Algorithm::least_connections, {1, 2, 3});
  std::map<std::size_t, int> seen;
  for (int i = 0; i < 60; ++i) {
    const std::size_t index = choice.pick().value();
    choice.counters[index]->load.up();
    ++seen[index];
  }
  EXPECT_EQ(seen, (std::map<std::size_t, int>{{0, 10}, {1, 20}, {2, 30}}));
  for (int i = 0; i < 10; ++i) choice.counters[0]->load.down();
  EXPECT_EQ(choice.pick(), 0U);
}

TEST(Balancer, LeastConnectionsDecidesAmongEqualsByChance) {
  Choice choice(Algorithm::least_connections, {1, 1, 1});
  std::map<std::size_t, int> seen;
  for (int i = 0; i < 3'000; ++i) ++seen[choice.pick().value()];
  for (const auto& [index, count] : seen) EXPECT_NEAR(count, 1'000, 130) << index;
}

/// Whoever is not concerned stays: when one of ten goes, exactly its clients move; when it comes back, exactly they come back.
TEST(Balancer, SourceHashMovesOnlyTheClientsOfAVanishedEndpoint) {
  Choice all(Algorithm::source_hash, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  Choice fewer(Algorithm::source_hash, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 1);
  fewer.config.endpoints.erase(fewer.config.endpoints.begin() + 6);
  fewer.counters.pop_back();
  fewer.assign();
  int moved = 0;
  for (std::uint32_t i = 0; i < 5'000; ++i) {
    const auto before = all.config.endpoints[all.pick(i).value()].address;
    const auto after = fewer.config.endpoints[fewer.pick(i).value()].address;
    if (before == after) continue;
    EXPECT_EQ(before.port, 7);
    ++moved;
  }
  EXPECT_NEAR(moved, 5'000 * 7 / 55, 120);
}

TEST(Balancer, TheSecondTierServesOnlyWhileTheFirstCannot) {
  for (const auto algorithm : kAll) {
    Choice choice(algorithm, {1, 100, 1});
    choice.config.endpoints[1].tier = 1;
    choice.assign();
    for (std::uint32_t i = 0; i < 200; ++i) EXPECT_NE(choice.pick(i), 1U);
    choice.eject(0);
    for (std::uint32_t i = 0; i < 200; ++i) EXPECT_EQ(choice.pick(i), 2U);
    choice.eject(2);
    for (std::uint32_t i = 0; i < 200; ++i) EXPECT_EQ(choice.pick(i), 1U);
    // All ejected: better those of the first tier than nothing.
    choice.eject(1);
    for (std::uint32_t i = 0; i < 200; ++i) EXPECT_NE(choice.pick(i), 1U);
  }
}

TEST(Balancer, AClientKeepsItsEndpointForATime) {
  Choice first(Algorithm::random, {1, 1, 1, 1, 1, 1, 1, 1});
  Choice second(Algorithm::round_robin, {1, 1, 1, 1, 1, 1, 1, 1}, 1);
  first.affinity = second.affinity = std::make_shared<AffinityTable>();
  for (Choice* worker : {&first, &second}) {
    worker->config.affinity = std::chrono::seconds(10);
    worker->assign();
  }
  const std::size_t kept = first.pick(5).value();
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(first.pick(5), kept);
    EXPECT_EQ(second.pick(5), kept);
    first.now = second.now += std::chrono::seconds(9);
  }
  // Not with one that fails, and with the next one from then on.
  const net::SocketAddress failed = first.config.endpoints[kept].address;
  const std::size_t next = first.pick(5, {&failed, 1}).value();
  EXPECT_NE(next, kept);
  EXPECT_EQ(second.pick(5), next);
  second.eject(next);
  EXPECT_NE(second.pick(5), next);
  first.now += std::chrono::seconds(11);
  std::set<std::size_t> seen;
  for (int i = 0; i < 100; ++i, first.now += std::chrono::seconds(11)) seen.insert(first.pick(5).value());
  EXPECT_GT(seen.size(), 4U);
}

TEST(AffinityTable, IsBoundedAndForgetsTheQuietest) {
  AffinityTable table;
  const auto endpoint = net::SocketAddress::loopback(1);
  const net::Clock::time_point now{};
  constexpr std::uint32_t kMany = 4 * AffinityTable::kShards * AffinityTable::kShardSize;
  for (std::uint32_t i = 0; i < kMany; ++i) {
    table.put(client(i), endpoint, now);
    EXPECT_TRUE(table.find(client(0), now, std::chrono::hours(3)));
  }
  std::uint32_t left = 0;
  for (std::uint32_t i = 0; i < kMany; ++i) left += table.find(client(i), now, std::chrono::hours(3)) ? 1 : 0;
  EXPECT_EQ(left, AffinityTable::kShards * AffinityTable::kShardSize);
  EXPECT_TRUE(table.find(client(kMany - 1), now, std::chrono::hours(3)));
}

TEST(Health, EjectsAfterFailuresInARowAndForLongerEachTime) {
  Health health;
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(health.failed(kSettings));
  EXPECT_FALSE(health.succeeded());
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(health.failed(kSettings));
  std::vector<int> seconds;
  for (int i = 0; i < 7; ++i) {
    const auto ejection = health.failed(kSettings);
    ASSERT_TRUE(ejection);
    EXPECT_TRUE(health.ejected());
    EXPECT_FALSE(health.failed(kSettings));
    seconds.push_back(static_cast<int>(ejection->lasts.count() / 1000));
    EXPECT_TRUE(health.give_back(*ejection));
    EXPECT_FALSE(health.give_back(*ejection));
    EXPECT_FALSE(health.ejected());
  }
  EXPECT_EQ(seconds, (std::vector<int>{10, 20, 40, 80, 160, 160, 160}));
  EXPECT_FALSE(health.succeeded());
  EXPECT_FALSE(health.failed(kSettings));
}

TEST(Health, ASuccessEndsAnEjectionAndItsReturnComesTooLate) {
  Health health;
  Settings once = kSettings;
  once.ejection_failures = 1;
  const auto ejection = health.failed(once);
  ASSERT_TRUE(ejection);
  EXPECT_TRUE(health.succeeded());
  const auto next = health.failed(once);
  ASSERT_TRUE(next);
  EXPECT_FALSE(health.give_back(*ejection));
  EXPECT_TRUE(health.ejected());
  Settings never = kSettings;
  never.ejection_failures = 0;
  Health other;
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(other.failed(never));
}

}  // namespace
}  // namespace holdfast::proxy
