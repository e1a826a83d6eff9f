#include <numeric>

#include "proxy_fixture.h"

namespace holdfast::testing {
namespace {

using proxy::BindFailure;
using proxy::Outcome;

std::string pattern(std::size_t size) {
  std::string text(size, '\0');
  std::uint32_t state = 1;
  for (char& byte : text) byte = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  return text;
}

TEST_F(ProxyTest, CarriesTenMegabytesBothWays) {
  Server server(echo);
  const UniqueFd client = connect_to(listen(config(1, {server.port()})));
  const std::string sent = pattern(10'000'000);
  std::thread sender([&] {
    EXPECT_TRUE(send_all(client.get(), sent));
    ::shutdown(client.get(), SHUT_WR);
  });
  std::string got;
  EXPECT_EQ(read_to_end(client.get(), got), End::eof);
  sender.join();
  EXPECT_TRUE(got == sent);
  EXPECT_TRUE(eventually([&] { return ended(1, Outcome::completed) == 1; }));
  EXPECT_EQ(stats(1).bytes_in, sent.size());
  EXPECT_EQ(stats(1).bytes_out, sent.size());
  EXPECT_EQ(stats(1).endpoints.at(0).total, 1U);
  ASSERT_TRUE(eventually([&] { return stats(1).active == 0; }));
  const auto times = stats(1).times;
  ASSERT_TRUE(times.has_value());
  EXPECT_EQ(std::accumulate(times->dial.classes.begin(), times->dial.classes.end(), 0U), 1U);
  EXPECT_EQ(std::accumulate(times->connection.classes.begin(), times->connection.classes.end(), 0U), 1U);
}

/// Backpressure: neither side's bytes pile up in the proxy, and all arrive in the end.
TEST_F(ProxyTest, ASlowReaderHoldsUpTheWriter) {
  std::promise<void> start;
  Server server([started = start.get_future().share()](UniqueFd client) {
    started.wait();
    echo(std::move(client));
  });
  const UniqueFd client = connect_to(listen(config(1, {server.port()})));
  const std::string sent = pattern(30'000'000);
  std::atomic<bool> all_sent{false};
  std::thread sender([&] {
    EXPECT_TRUE(send_all(client.get(), sent));
    all_sent = true;
    ::shutdown(client.get(), SHUT_WR);
  });
  std::this_thread::sleep_for(200ms);
  EXPECT_FALSE(all_sent);
  start.set_value();
  std::string got;
  EXPECT_EQ(read_to_end(client.get(), got), End::eof);
  sender.join();
  EXPECT_TRUE(got == sent);
}

/// faults.md 15: a half-close closed everything.
TEST_F(ProxyTest, CarriesTheClientsHalfClose) {
  Server server([](UniqueFd client) {
    std::string request;
    EXPECT_EQ(read_to_end(client.get(), request), End::eof);
    send_all(client.get(), "got " + request);
  });
  const UniqueFd client = connect_to(listen(config(1, {server.port()})));
  send_all(client.get(), "x");
  ::shutdown(client.get(), SHUT_WR);
  std::string answer;
  EXPECT_EQ(read_to_end(client.get(), answer), End::eof);
  EXPECT_EQ(answer, "got x");
}

TEST_F(ProxyTest, CarriesTheServersHalfClose) {
  std::promise<std::string> late;
  Server server([&](UniqueFd client) {
    send_all(client.get(), "hello");
    ::shutdown(client.get(), SHUT_WR);
    std::string text;
    EXPECT_EQ(read_to_end(client.get(), text), End::eof);
    late.set_value(text);
  });
  const UniqueFd client = connect_to(listen(config(1, {server.port()})));
  std::string greeting;
  EXPECT_EQ(read_to_end(client.get(), greeting), End::eof);
  EXPECT_EQ(greeting, "hello");
  std::this_thread::sleep_for(20ms);
  send_all(client.get(), "still here");
  ::shutdown(client.get(), SHUT_WR);
  EXPECT_EQ(late.get_future().get(), "still here");
  EXPECT_TRUE(eventually([&] { return ended(1, Outcome::completed) == 1; }));
}

/// faults.md 16: a client's reset was seen as a clean end.
TEST_F(ProxyTest, CarriesAResetAfterTheBytesBeforeIt) {
  std::promise<std::pair<End, std::string>> seen;
  Server server([&](UniqueFd client) {
    std::string text;
    const End end = read_to_end(client.get(), text);
    seen.set_value({end, text});
  });
  UniqueFd client = connect_to(listen(config(1, {server.port()})));
  send_all(client.get(), "last words");
  ASSERT_TRUE(eventually([&] { return stats(1).bytes_in == 10; }));
  reset_connection(std::move(client));
  const auto [end, text] = seen.get_future().get();
  EXPECT_EQ(end, End::reset);
  EXPECT_EQ(text, "last words");
  EXPECT_TRUE(eventually([&] { return ended(1, Outcome::reset) == 1; }));
}

/// A connection that is spliced by then: more than 256 KiB went before.
TEST_F(ProxyTest, CarriesAResetAfterBulk) {
  const std::string sent = pattern(3'000'000);
  std::promise<std::pair<End, std::string>> seen;
  Server server([&](UniqueFd client) {
    std::string text;
    const End end = read_to_end(client.get(), text);
    seen.set_value({end, text});
  });
  UniqueFd client = connect_to(listen(config(1, {server.port()})));
  send_all(client.get(), sent);
  ASSERT_TRUE(eventually([&] { return stats(1).bytes_in == sent.size(); }));
  reset_connection(std::move(client));
  const auto [end, text] = seen.get_future().get();
  EXPECT_EQ(end, End::reset);
  EXPECT_TRUE(text == sent);
}

/// faults.md 17: the client was gone and the server went on computing.
TEST_F(ProxyTest, ASilentServerHearsWithinASecondThatItsClientIsGone) {
  std::promise<End> closed;
  std::promise<End> half_closed;
  std::promise<End> reset;
  Server server([&](UniqueFd client) {
    std::string kind;
    closed.set_value(read_to_end(client.get(), kind, 1'000));
  });
  Server other([&](UniqueFd client) {
    std::string kind;
    half_closed.set_value(read_to_end(client.get(), kind, 1'000));
    // The client's half is closed, so only a reset is left to hear of.
    pollfd gone{client.get(), 0, 0};
    reset.set_value(::poll(&gone, 1, 1'000) == 1 && (gone.revents & (POLLERR | POLLHUP)) != 0 ? End::reset : End::silence);
  });
  const std::uint16_t port = listen(config(1, {server.port()}));
  connect_to(port).reset();
  EXPECT_EQ(closed.get_future().get(), End::eof);
  UniqueFd client = connect_to(listen(config(2, {other.port()})));
  ::shutdown(client.get(), SHUT_WR);
  EXPECT_EQ(half_closed.get_future().get(), End::eof);
  reset_connection(std::move(client));
  EXPECT_EQ(reset.get_future().get(), End::reset);
}

/// The client goes away while its endpoint does not answer the dial.
TEST_F(ProxyTest, AClientThatResetsDuringALongDialIsNoticed) {
  UniqueFd silent(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const net::RawAddress any(SocketAddress::loopback(0));
  ASSERT_EQ(::bind(silent.get(), any.data(), any.size()), 0);
  ASSERT_EQ(::listen(silent.get(), 0), 0);
  const UniqueFd filler = connect_to(port_of(silent.get()));
  auto stuck = config(1, {port_of(silent.get())});
  stuck.connect_timeout = 60s;
  UniqueFd client = connect_to(listen(stuck));
  send_all(client.get(), "hi");
  ASSERT_TRUE(eventually([&] { return stats(1).active == 1; }));
  reset_connection(std::move(client));
  const auto begun = std::chrono::steady_clock::now();
  ASSERT_TRUE(eventually([&] { return ended(1, Outcome::reset) == 1; }));
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 1s);
}

TEST_F(ProxyTest, CarriesTheServersResetOfAHalfClosedConnection) {
  Server server([](UniqueFd client) {
    std::string text;
    read_to_end(client.get(), text);
    send_all(client.get(), "part");
    std::this_thread::sleep_for(50ms);
    reset_connection(std::move(client));
  });
  const UniqueFd client = connect_to(listen(config(1, {server.port()})));
  ::shutdown(client.get(), SHUT_WR);
  std::string text;
  EXPECT_EQ(read_to_end(client.get(), text), End::reset);
  EXPECT_EQ(text, "part");
}

/// faults.md 21: one dead endpoint was a fixed share of failures.
TEST_F(ProxyTest, GoesOnToAnotherEndpointWhenOneRefuses) {
  Server server(echo);
  const std::uint16_t port = listen(config(1, {dead_port(), server.port(), dead_port()}));
  for (int i = 0; i < 60; ++i) {
    const UniqueFd client = connect_to(port);
    send_all(client.get(), "hi");
    EXPECT_EQ(receive(client.get(), 2), "hi");
  }
  EXPECT_EQ(server.accepted(), 60);
  EXPECT_GT(stats(1).dial_failures, 0U);
  EXPECT_EQ(ended(1, Outcome::failed), 0U);
}

TEST_F(ProxyTest, ResetsTheClientWhenNoEndpointAnswers) {
  const UniqueFd client = connect_to(listen(config(1, {dead_port(), dead_port()})));
  EXPECT_EQ(end_of(client.get()), End::reset);
  EXPECT_TRUE(eventually([&] { return ended(1, Outcome::failed) == 1; }));
  EXPECT_EQ(stats(1).dial_failures, 2U);
}

TEST_F(ProxyTest, RefusesAtOnceWithoutEndpoints) {
  const UniqueFd client = connect_to(listen(config(1, {})));
  EXPECT_EQ(end_of(client.get()), End::reset);
  EXPECT_TRUE(eventually([&] { return ended(1, Outcome::refused) == 1; }));
}

/// An endpoint whose backlog is full does not answer at all.
TEST_F(ProxyTest, GoesOnWhenAnEndpointDoesNotAnswer) {
  Server server(echo);
  UniqueFd silent(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const net::RawAddress any(SocketAddress::loopback(0));
  ASSERT_EQ(::bind(silent.get(), any.data(), any.size()), 0);
  ASSERT_EQ(::listen(silent.get(), 0), 0);
  const UniqueFd filler = connect_to(port_of(silent.get()));
  auto two = config(1, {port_of(silent.get()), server.port()});
  two.connect_timeout = 100ms;
  const std::uint16_t port = listen(two);
  for (int i = 0; i < 4; ++i) {
    const UniqueFd client = connect_to(port);
    send_all(client.get(), "hi");
    EXPECT_EQ(receive(client.get(), 2), "hi");
  }
}

TEST_F(ProxyTest, AListenerThatCannotBindAffectsNoOther) {
  Server server(echo);
  auto taken = config(1, {server.port()});
  taken.address.port = server.port();
  const auto results = apply({{}, {taken, config(2, {server.port()})}});
  ASSERT_TRUE(results.at(0).error);
  EXPECT_EQ(results[0].error->reason, BindFailure::address_in_use);
  EXPECT_EQ(results[0].error->detail, "bind: Address already in use");
  const UniqueFd client = connect_to(results.at(1).port);
  send_all(client.get(), "hi");
  EXPECT_EQ(receive(client.get(), 2), "hi");
}

TEST_F(ProxyTest, KeepsItsSocketAndItsConnectionsWhenReplaced) {
  Server first(echo);
  Server second(echo);
  const std::uint16_t port = listen(config(1, {first.port()}));
  const UniqueFd client = connect_to(port);
  send_all(client.get(), "a");
  EXPECT_EQ(receive(client.get(), 1), "a");
  EXPECT_EQ(listen(config(1, {first.port()})), port);
  EXPECT_EQ(listen(config(1, {first.port(), second.port()})), port);
  send_all(client.get(), "b");
  EXPECT_EQ(receive(client.get(), 1), "b");
  for (int i = 0; i < 8; ++i) {
    const UniqueFd other = connect_to(port);
    send_all(other.get(), "c");
    EXPECT_EQ(receive(other.get(), 1), "c");
  }
  EXPECT_GE(second.accepted(), 2);
}

TEST_F(ProxyTest, MovesToAnotherPortWithoutTouchingConnections) {
  Server server(echo);
  auto moving = config(1, {server.port()});
  const std::uint16_t before = listen(moving);
  const UniqueFd client = connect_to(before);
  moving.address.port = dead_port();
  EXPECT_EQ(listen(moving), moving.address.port);
  EXPECT_FALSE(connect_to(before));
  EXPECT_TRUE(connect_to(moving.address.port));
  send_all(client.get(), "a");
  EXPECT_EQ(receive(client.get(), 1), "a");
}

/// A renamed service: the address goes from one listener to the other in one delta.
TEST_F(ProxyTest, AnAddressGoesFromOneListenerToAnotherInOneDelta) {
  Server server(echo);
  const std::uint16_t port = listen(config(1, {server.port()}));
  auto heir = config(2, {server.port()});
  heir.address.port = port;
  const auto results = apply({{1}, {heir}});
  EXPECT_EQ(results.at(0).port, port);
  const UniqueFd client = connect_to(port);
  send_all(client.get(), "a");
  EXPECT_EQ(receive(client.get(), 1), "a");
  EXPECT_EQ(proxy_.info().listeners, 1U);
}

TEST_F(ProxyTest, ARemovedListenersPortIsFreeWhenItIsSaidToBe) {
  for (int i = 0; i < 50; ++i) {
    const std::uint16_t port = listen(config(1, {}));
    apply({{1}, {}});
    auto again = config(2, {});
    again.address.port = port;
    EXPECT_EQ(apply({{}, {again}}).at(0).port, port);
    apply({{2}, {}});
  }
}

}  // namespace
}  // namespace holdfast::testing
