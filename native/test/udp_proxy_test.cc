#include <algorithm>
#include <map>

#include "proxy_fixture.h"
#include "udp_peers.h"

namespace holdfast::testing {
namespace {

using proxy::Outcome;
using proxy::Protocol;

class UdpTest : public ProxyTest {
 protected:
  static proxy::ListenerConfig udp(proxy::ListenerId id, const std::vector<std::uint16_t>& ports, std::chrono::milliseconds idle = 60s,
                                   std::uint32_t most = 0) {
    proxy::ListenerConfig made = config(id, ports);
    made.protocol = Protocol::udp;
    made.idle = idle;
    made.max_connections = most;
    return made;
  }
};

TEST_F(UdpTest, CarriesDatagramsBothWaysFromTheServicesAddress) {
  UdpServer server([](const std::string& text) { return std::vector<std::string>{text + "!", text + "?", ""}; });
  const UdpPeer client(listen(udp(1, {server.port()})));  // connected: it takes datagrams of this address alone
  EXPECT_EQ(client.ask("one"), "one!");
  EXPECT_EQ(client.receive(), "one?");
  EXPECT_EQ(client.receive(), "");
  server.push("unasked");
  EXPECT_EQ(client.receive(), "unasked");
  ASSERT_TRUE(eventually([&] { return stats(1).bytes_out == 15; }));
  EXPECT_EQ(stats(1).bytes_in, 3U);
  EXPECT_EQ(stats(1).active, 1U);
}

TEST_F(UdpTest, AClientKeepsItsEndpointAndClientsAreSpread) {
  UdpServer first(named("first"));
  UdpServer second(named("second"));
  const std::uint16_t port = listen(udp(1, {first.port(), second.port()}));
  std::map<std::string, int> shares;
  for (int i = 0; i < 20; ++i) {
    const UdpPeer client(port);
    const auto answer = client.ask("x");
    ASSERT_TRUE(answer);
    ++shares[*answer];
    for (int again = 0; again < 3; ++again) EXPECT_EQ(client.ask("y"), answer);
  }
  EXPECT_EQ(shares, (std::map<std::string, int>{{"first", 10}, {"second", 10}}));
  EXPECT_EQ(first.sources() + second.sources(), 20U);
}

TEST_F(UdpTest, CarriesEverySizeIntactAndEmptyOnes) {
  UdpServer server;
  const UdpPeer client(listen(udp(1, {server.port()})));
  for (const std::size_t size : {0, 1, 1'200, 1'472, 1'473, 9'000, 65'506, 65'507}) {
    const std::string text(size, static_cast<char>('a' + size % 26));
    EXPECT_EQ(client.ask(text), text) << size;
  }
  EXPECT_EQ(stats(1).dropped, 0U);
}

TEST_F(UdpTest, AnIdleFlowEnds) {
  UdpServer server;
  const std::uint16_t port = listen(udp(1, {server.port()}, 200ms));
  const UdpPeer client(port);
  EXPECT_EQ(client.ask("one"), "one");
  for (int i = 0; i < 6; ++i) {
    std::this_thread::sleep_for(80ms);
    server.push("renews");
    EXPECT_EQ(client.receive(), "renews");
  }
  EXPECT_EQ(server.sources(), 1U);
  ASSERT_TRUE(eventually([&] { return ended(1, Outcome::completed) == 1; }));
  EXPECT_EQ(stats(1).active, 0U);
  EXPECT_EQ(client.ask("two"), "two");
  EXPECT_EQ(server.sources(), 2U);
}

/// faults.md 14: sockets of DNS-like flows piled up.
TEST_F(UdpTest, OneRequestAndOneReplyEndEarlyButNothingElseDoes) {
  UdpServer server([](const std::string& text) { return std::vector<std::string>(text.size(), "reply"); });
  const std::uint16_t port = listen(udp(1, {server.port()}));
  const UdpPeer query(port);
  const UdpPeer twice(port);
  const UdpPeer stream(port);
  const UdpPeer unanswered(port);
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_EQ(query.ask("1"), "reply");
  EXPECT_EQ(twice.ask("1"), "reply");
  EXPECT_EQ(twice.ask("1"), "reply");
  EXPECT_EQ(stream.ask("22"), "reply");
  unanswered.send("");
  ASSERT_TRUE(eventually([&] { return stats(1).active == 4; }));
  ASSERT_TRUE(eventually([&] { return stats(1).active == 3; }));
  EXPECT_GE(std::chrono::steady_clock::now() - begun, 1'990ms);
  std::this_thread::sleep_for(300ms);
  EXPECT_EQ(stats(1).active, 3U);
  EXPECT_EQ(ended(1, Outcome::completed), 1U);
}

TEST_F(UdpTest, AtTheCapTheOneThatIsIdleTheLongestGivesWay) {
  UdpServer server;
  const std::uint16_t port = listen(udp(1, {server.port()}, 60s, 3));
  std::vector<UdpPeer> clients;
  for (int i = 0; i < 4; ++i) clients.emplace_back(port);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(clients[static_cast<std::size_t>(i)].ask("a"), "a");
  // The first is renewed, so the second is the oldest.
  EXPECT_EQ(clients[0].ask("b"), "b");
  EXPECT_EQ(clients[3].ask("c"), "c");
  EXPECT_EQ(server.sources(), 4U);
  EXPECT_EQ(clients[0].ask("d"), "d");
  EXPECT_EQ(clients[2].ask("d"), "d");
  EXPECT_EQ(server.sources(), 4U);
  EXPECT_EQ(clients[1].ask("e"), "e");
  EXPECT_EQ(server.sources(), 5U);
  EXPECT_EQ(stats(1).evicted, 2U);
  EXPECT_EQ(stats(1).active, 3U);
}

TEST_F(UdpTest, ManyClientsAtACapOfOneLoseNothing) {
  UdpServer server;
  const std::uint16_t port = listen(udp(1, {server.port()}, 60s, 1));
  std::vector<UdpPeer> clients;
  for (int i = 0; i < 50; ++i) clients.emplace_back(port);
  for (const UdpPeer& client : clients) client.send("x");
  EXPECT_TRUE(eventually([&] { return server.received() == 50; }));
  EXPECT_EQ(stats(1).active, 1U);
}

/// A closed port at the endpoint: the ICMP error ends the flow, the client's next datagram goes elsewhere.
TEST_F(UdpTest, AnErrorMovesTheClient) {
  UdpServer first(named("first"));
  UdpServer second(named("second"));
  // An even one is the first worker's, whose round begins with the first endpoint.
  const std::uint16_t port = listen(udp(2, {first.port(), second.port()}));
  const UdpPeer a(port);
  const UdpPeer b(port);
  EXPECT_EQ(a.ask("x"), "first");
  EXPECT_EQ(b.ask("x"), "second");
  first.stop();
  a.send("lost with the endpoint");
  ASSERT_TRUE(eventually([&] { return ended(2, Outcome::reset) == 1; }));
  EXPECT_EQ(a.ask("x"), "second");
  EXPECT_EQ(b.ask("x"), "second");
  EXPECT_EQ(stats(2).active, 2U);
  EXPECT_EQ(stats(2).dial_failures, 1U);
}

TEST_F(UdpTest, OneDeadEndpointOfThreeIsNoticedByNobodyForLong) {
  UdpServer first(named("ok"));
  UdpServer second(named("ok"));
  const std::uint16_t port = listen(udp(1, {first.port(), dead_udp_port(), second.port()}));
  for (int i = 0; i < 30; ++i) {
    const UdpPeer client(port);
    auto answer = client.ask("x", 50);
    if (!answer) answer = client.ask("x");
    EXPECT_EQ(answer, "ok") << i;
  }
  // Five failures in a row eject it.
  ASSERT_TRUE(eventually([&] { return ejected().size() == 1; }));
}

TEST_F(UdpTest, AnEndpointThatCannotBeConnectedIsPassedOver) {
  UdpServer server;
  // Connecting to the broadcast address is refused at once (EACCES).
  proxy::ListenerConfig some = udp(2, {server.port()});
  some.endpoints.insert(some.endpoints.begin(), {{net::Family::ipv4, 9, {255, 255, 255, 255}}, 1, 0});
  const std::uint16_t port = listen(some);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(UdpPeer(port).ask("x"), "x");
  EXPECT_GT(stats(2).dial_failures, 0U);
  some.endpoints.pop_back();
  listen(some);
  const UdpPeer client(port);
  client.send("nowhere to go");
  ASSERT_TRUE(eventually([&] { return stats(2).dropped == 1; }));
  listen(udp(2, {server.port()}));
  EXPECT_EQ(client.ask("x"), "x");
}

/// faults.md 11: a client with one socket never moved off a deleted endpoint.
TEST_F(UdpTest, AWithdrawnEndpointLosesItsClientsAtOnceAndItsRepliesArrive) {
  UdpServer first(named("first"));
  UdpServer second(named("second"));
  const std::uint16_t port = listen(udp(1, {first.port()}));
  const UdpPeer client(port);
  EXPECT_EQ(client.ask("x"), "first");
  listen(udp(1, {second.port()}));
  EXPECT_EQ(client.ask("x"), "second");
  first.push("late");
  EXPECT_EQ(client.receive(), "late");
  EXPECT_EQ(client.ask("x"), "second");
  EXPECT_EQ(first.received(), 1);
  EXPECT_TRUE(drained().empty());
}

TEST_F(UdpTest, ADrainEndsAtItsDeadline) {
  UdpServer first;
  UdpServer second;
  auto before = udp(1, {first.port()});
  auto after = udp(1, {second.port()});
  before.drain = after.drain = 150ms;
  const UdpPeer client(listen(before));
  EXPECT_EQ(client.ask("xx"), "xx");
  const auto begun = std::chrono::steady_clock::now();
  listen(after);
  ASSERT_TRUE(eventually([&] { return drained().size() == 1; }));
  EXPECT_GE(std::chrono::steady_clock::now() - begun, 140ms);
  EXPECT_EQ(drained()[0].endpoint, SocketAddress::loopback(first.port()));
  EXPECT_EQ(drained()[0].closed, 1U);
  first.push("too late");
  EXPECT_EQ(client.receive(100), std::nullopt);
  EXPECT_EQ(stats(1).endpoints.size(), 1U);
}

TEST_F(UdpTest, ADrainEndsWhenItsLastFlowHasGone) {
  UdpServer server;
  const UdpPeer client(listen(udp(1, {server.port()}, 150ms)));
  EXPECT_EQ(client.ask("x"), "x");
  listen(udp(1, {}, 150ms));
  EXPECT_TRUE(drained().empty());
  ASSERT_TRUE(eventually([&] { return drained().size() == 1; }));
  EXPECT_EQ(drained()[0].closed, 0U);
}

TEST_F(UdpTest, AnEndpointThatComesBackKeepsItsClients) {
  UdpServer server;
  const std::uint16_t port = listen(udp(1, {server.port()}));
  const UdpPeer client(port);
  EXPECT_EQ(client.ask("x"), "x");
  listen(udp(1, {}));
  listen(udp(1, {server.port()}));
  EXPECT_EQ(client.ask("y"), "y");
  EXPECT_EQ(server.sources(), 1U);
  EXPECT_TRUE(drained().empty());
}

TEST_F(UdpTest, ATableChangeKeepsTheFlowsOfWhatStays) {
  UdpServer first;
  UdpServer second;
  const std::uint16_t port = listen(udp(1, {first.port()}));
  const UdpPeer client(port);
  EXPECT_EQ(client.ask("x"), "x");
  auto changed = udp(1, {second.port(), first.port()}, 30s, 100);
  changed.algorithm = proxy::Algorithm::source_hash;
  listen(changed);
  EXPECT_EQ(client.ask("y"), "y");
  EXPECT_EQ(first.sources(), 1U);
  EXPECT_EQ(second.received(), 0);
}

/// faults.md 9 and 10: without endpoints a client is refused as by a closed port, and it is served as soon as there is one.
TEST_F(UdpTest, ZeroEndpointsRefuseAndTheFirstOneServes) {
  UdpServer server;
  const std::uint16_t port = listen(udp(1, {}));
  const UdpPeer client(port);
  client.send("x");
  EXPECT_EQ(client.error(), ECONNREFUSED);
  listen(udp(1, {server.port()}));
  EXPECT_EQ(client.ask("y"), "y");
  listen(udp(1, {}));
  client.send("z");
  EXPECT_EQ(client.error(), ECONNREFUSED);
  server.push("late");
  EXPECT_EQ(client.receive(), "late");
  listen(udp(1, {server.port()}));
  EXPECT_EQ(client.ask("y"), "y");
}

TEST_F(UdpTest, APortThatIsTakenIsNamed) {
  UdpServer server;
  const std::uint16_t port = listen(udp(1, {server.port()}));
  auto second = udp(2, {server.port()});
  second.address.port = port;
  const auto results = apply({{}, {second}});
  ASSERT_TRUE(results[0].error);
  EXPECT_EQ(results[0].error->reason, proxy::BindFailure::address_in_use);
  EXPECT_EQ(UdpPeer(port).ask("datagram"), "datagram");
}

TEST_F(UdpTest, TcpMayHaveTheSameAddress) {
  UdpServer server;
  Server stream(echo);
  auto datagrams = udp(2, {server.port()});
  std::uint16_t port = 0;
  // Somebody else may have it by chance.
  for (int tries = 0; tries < 10 && port == 0; ++tries) {
    datagrams.address.port = listen(config(1, {stream.port()}));
    port = listen(datagrams);
    if (port == 0) apply({{1}, {}});
  }
  EXPECT_EQ(UdpPeer(port).ask("datagram"), "datagram");
  const UniqueFd connection = connect_to(port);
  send_all(connection.get(), "bytes");
  EXPECT_EQ(receive(connection.get(), 5), "bytes");
}

TEST_F(UdpTest, ARemovedListenerRefusesAndItsRepliesArrive) {
  UdpServer server;
  const std::uint16_t port = listen(udp(1, {server.port()}));
  const UdpPeer client(port);
  EXPECT_EQ(client.ask("x"), "x");
  apply({{1}, {}});
  ASSERT_TRUE(eventually([&] { return client.send("y") && client.error(20) == ECONNREFUSED; }));
  server.push("late");
  EXPECT_EQ(client.receive(), "late");
  // Its address may be taken while flows drain.
  auto heir = udp(2, {server.port()});
  heir.address.port = port;
  EXPECT_EQ(listen(heir), port);
  EXPECT_EQ(UdpPeer(port).ask("z"), "z");
}

TEST_F(UdpTest, AnAddressGoesFromOneListenerToAnotherWithoutAGap) {
  UdpServer first(named("first"));
  UdpServer second(named("second"));
  const std::uint16_t port = listen(udp(1, {first.port()}));
  const UdpPeer client(port);
  EXPECT_EQ(client.ask("x"), "first");
  auto heir = udp(2, {second.port()});
  heir.address.port = port;
  EXPECT_EQ(apply({{1}, {heir}}).at(0).port, port);
  EXPECT_EQ(client.ask("x"), "second");
}

TEST_F(UdpTest, AListenerMayChangeItsProtocol) {
  UdpServer datagrams;
  Server stream(echo);
  const std::uint16_t port = listen(udp(1, {datagrams.port()}));
  const UdpPeer old(port);
  EXPECT_EQ(old.ask("x"), "x");
  const std::uint16_t tcp_port = listen(config(1, {stream.port()}));
  const UniqueFd connection = connect_to(tcp_port);
  send_all(connection.get(), "bytes");
  EXPECT_EQ(receive(connection.get(), 5), "bytes");
  ASSERT_TRUE(eventually([&] { return old.send("y") && old.error(20) == ECONNREFUSED; }));
  EXPECT_EQ(UdpPeer(listen(udp(1, {datagrams.port()}))).ask("x"), "x");
  apply({{1}, {}});
  EXPECT_FALSE(connect_to(tcp_port));
}

TEST_F(UdpTest, StopsAtOnceUnderLoadAndInTimeWithGrace) {
  UdpServer server;
  const std::uint16_t port = listen(udp(1, {server.port()}));
  std::atomic<bool> over{false};
  std::thread load([&] {
    const UdpPeer client(port);
    while (!over) client.ask("x", 10);
  });
  EXPECT_TRUE(eventually([&] { return server.received() > 100; }));
  const auto begun = std::chrono::steady_clock::now();
  stop(500ms);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 5s);
  over = true;
  load.join();
}

TEST_F(UdpTest, RepliesArriveWhileItStopsAndQuietFlowsAreNotWaitedFor) {
  UdpServer server;
  const UdpPeer client(listen(udp(1, {server.port()})));
  EXPECT_EQ(client.ask("xx"), "xx");
  const auto begun = std::chrono::steady_clock::now();
  std::thread late([&] {
    std::this_thread::sleep_for(100ms);
    server.push("late");
  });
  stop(60s);
  late.join();
  EXPECT_EQ(client.receive(), "late");
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 20s);
}

}  // namespace
}  // namespace holdfast::testing
