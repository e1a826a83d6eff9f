#include "proxy_fixture.h"

namespace holdfast::testing {
namespace {

using proxy::Outcome;

/// A connection that is known to have reached the server.
UniqueFd established(std::uint16_t port) {
  UniqueFd client = connect_to(port);
  send_all(client.get(), "a");
  EXPECT_EQ(receive(client.get(), 1), "a");
  return client;
}

class DrainTest : public ProxyTest {
 protected:
  Server first_{echo};
  Server second_{echo};
};

/// faults.md 19: persistent connections stayed on a dying pod.
TEST_F(DrainTest, CutsWhatRunsAtTheDeadline) {
  const std::uint16_t port = listen(config(1, {first_.port()}, 150ms));
  const UniqueFd one = established(port);
  const UniqueFd two = established(port);
  const auto begun = std::chrono::steady_clock::now();
  listen(config(1, {second_.port()}, 150ms));
  EXPECT_EQ(end_of(one.get()), End::reset);
  EXPECT_EQ(end_of(two.get()), End::reset);
  EXPECT_GE(std::chrono::steady_clock::now() - begun, 140ms);
  ASSERT_TRUE(eventually([&] { return drained().size() == 1; }));
  EXPECT_EQ(drained()[0].endpoint, SocketAddress::loopback(first_.port()));
  EXPECT_EQ(drained()[0].closed, 2U);
  EXPECT_EQ(ended(1, Outcome::drained), 2U);
}

TEST_F(DrainTest, NewConnectionsGoElsewhereAtOnceAndTheRestGoesOn) {
  const std::uint16_t port = listen(config(1, {first_.port()}));
  const UniqueFd old = established(port);
  listen(config(1, {second_.port()}));
  for (int i = 0; i < 10; ++i) established(port);
  EXPECT_EQ(first_.accepted(), 1);
  EXPECT_EQ(second_.accepted(), 10);
  send_all(old.get(), "b");
  EXPECT_EQ(receive(old.get(), 1), "b");
  const auto endpoints = stats(1).endpoints;
  EXPECT_EQ(std::count_if(endpoints.begin(), endpoints.end(), [](const auto& e) { return e.draining && e.active == 1; }), 1);
}

TEST_F(DrainTest, TellsWhenTheLastConnectionHasGoneByItself) {
  const std::uint16_t port = listen(config(1, {first_.port()}));
  UniqueFd one = established(port);
  UniqueFd two = established(port);
  listen(config(1, {}));
  one.reset();
  std::this_thread::sleep_for(50ms);
  EXPECT_TRUE(drained().empty());
  two.reset();
  ASSERT_TRUE(eventually([&] { return drained().size() == 1; }));
  EXPECT_EQ(drained()[0].closed, 0U);
}

TEST_F(DrainTest, IsCancelledWhenTheEndpointComesBack) {
  const std::uint16_t port = listen(config(1, {first_.port()}, 150ms));
  const UniqueFd client = established(port);
  listen(config(1, {}, 150ms));
  listen(config(1, {first_.port()}, 150ms));
  EXPECT_EQ(end_of(client.get(), 400), End::silence);
  send_all(client.get(), "b");
  EXPECT_EQ(receive(client.get(), 1), "b");
  EXPECT_TRUE(drained().empty());
  EXPECT_FALSE(stats(1).endpoints.at(0).draining);
}

TEST_F(DrainTest, ARemovedListenerClosesItsSocketAtOnceAndDrains) {
  const std::uint16_t port = listen(config(1, {first_.port()}, 150ms));
  const UniqueFd client = established(port);
  apply({{1}, {}});
  EXPECT_FALSE(connect_to(port));
  EXPECT_FALSE(proxy_.table().stats(1));
  send_all(client.get(), "b");
  EXPECT_EQ(receive(client.get(), 1), "b");
  EXPECT_EQ(end_of(client.get()), End::reset);
  ASSERT_TRUE(eventually([&] { return drained().size() == 1; }));
  EXPECT_EQ(drained()[0].closed, 1U);
}

TEST_F(DrainTest, ARemovedListenerThatComesBackKeepsItsConnections) {
  const std::uint16_t port = listen(config(1, {first_.port()}, 150ms));
  const UniqueFd client = established(port);
  apply({{1}, {}});
  listen(config(1, {first_.port()}, 150ms));
  EXPECT_EQ(end_of(client.get(), 300), End::silence);
  EXPECT_EQ(stats(1).active, 1U);
}

TEST_F(DrainTest, ADialOfAWithdrawnEndpointGoesToAnother) {
  UniqueFd silent(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const net::RawAddress any(SocketAddress::loopback(0));
  ASSERT_EQ(::bind(silent.get(), any.data(), any.size()), 0);
  ASSERT_EQ(::listen(silent.get(), 0), 0);
  const UniqueFd filler = connect_to(port_of(silent.get()));
  auto stuck = config(1, {port_of(silent.get())});
  stuck.connect_timeout = 60s;
  const UniqueFd client = connect_to(listen(stuck));
  send_all(client.get(), "hi");
  ASSERT_TRUE(eventually([&] { return stats(1).active == 1; }));
  listen(config(1, {first_.port()}));
  EXPECT_EQ(receive(client.get(), 2), "hi");
  EXPECT_EQ(stats(1).dial_failures, 0U);
}

TEST_F(DrainTest, StopClosesListenersAndGivesConnectionsTime) {
  const std::uint16_t port = listen(config(1, {first_.port()}));
  UniqueFd client = established(port);
  std::thread leaver([&] {
    std::this_thread::sleep_for(100ms);
    EXPECT_FALSE(connect_to(port));
    client.reset();
  });
  const auto begun = std::chrono::steady_clock::now();
  stop(30s);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 10s);
  leaver.join();
  EXPECT_EQ(ended(1, Outcome::completed), 1U);
}

TEST_F(DrainTest, StopCutsWhatRunsAfterTheGrace) {
  const UniqueFd client = established(listen(config(1, {first_.port()})));
  stop(100ms);
  EXPECT_EQ(end_of(client.get()), End::reset);
  EXPECT_EQ(ended(1, Outcome::drained), 1U);
}

/// The table changes all the time while connections come and go: nothing is lost, and the sanitizers look on.
TEST_F(DrainTest, ConnectionsAreNotLostWhileEndpointsAreReplaced) {
  const std::uint16_t port = listen(config(1, {first_.port()}, 5s));
  std::atomic<bool> done{false};
  std::atomic<int> lost{0};
  std::vector<std::thread> clients;
  for (int i = 0; i < 4; ++i) {
    clients.emplace_back([&] {
      while (!done) {
        const UniqueFd client = connect_to(port);
        if (!send_all(client.get(), "a") || receive(client.get(), 1) != "a") ++lost;
      }
    });
  }
  for (int i = 0; i < 100; ++i) {
    listen(config(1, {i % 2 == 0 ? second_.port() : first_.port()}, 5s));
    stats(1);
    std::this_thread::sleep_for(3ms);
  }
  done = true;
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(lost, 0);
}

}  // namespace
}  // namespace holdfast::testing
