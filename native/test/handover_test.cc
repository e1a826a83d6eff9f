#include <fcntl.h>

#include "proxy_fixture.h"
#include "udp_peers.h"

namespace holdfast::testing {
namespace {

using proxy::Protocol;

/// The proxy of the fixture is the first process's, `next_` that of the one after it.
class HandoverTest : public ProxyTest {
 protected:
  /// On the port that the first one's has.
  proxy::ListenerConfig same(proxy::ListenerConfig made, std::uint16_t port) const {
    made.address.port = port;
    return made;
  }

  void hand_over(Protocol protocol) {
    for (const proxy::ListeningSocket& socket : proxy_.table().sockets()) {
      ASSERT_EQ(socket.protocol, protocol);
      ASSERT_TRUE(next_.table().inherit(UniqueFd(::fcntl(socket.fd, F_DUPFD_CLOEXEC, 0)), protocol));
    }
  }

  std::uint16_t take_over(const proxy::ListenerConfig& config) {
    const auto taken = std::make_shared<std::promise<void>>();
    const auto results = next_.apply({{}, {config}}, [taken] { taken->set_value(); });
    taken->get_future().wait();
    next_.table().drop_inherited();
    return results.at(0).port;
  }

  proxy::Proxy next_{settings(), [](const proxy::Event&) {}};
};

TEST_F(HandoverTest, ConnectionsGoOnInTheFirstAndNewOnesComeToTheNext) {
  Server server(echo);
  const std::uint16_t port = listen(config(1, {server.port()}));
  const UniqueFd before = connect_to(port);
  ASSERT_TRUE(send_all(before.get(), "one"));
  ASSERT_EQ(receive(before.get(), 3), "one");

  hand_over(Protocol::tcp);
  ASSERT_EQ(take_over(same(config(1, {server.port()}), port)), port);
  std::promise<void> ended;
  proxy_.begin_stop(60s, [&] { ended.set_value(); }, true);
  for (int i = 0; i < 20; ++i) {
    const UniqueFd after = connect_to(port);
    ASSERT_TRUE(send_all(after.get(), "new"));
    ASSERT_EQ(receive(after.get(), 3), "new") << i;
  }
  ASSERT_TRUE(send_all(before.get(), "two"));
  EXPECT_EQ(receive(before.get(), 3), "two");
  EXPECT_GE(next_.table().stats(1)->active + next_.table().stats(1)->ended[0], 19U);
  ::shutdown(before.get(), SHUT_WR);
  std::string rest;
  EXPECT_EQ(read_to_end(before.get(), rest), End::eof);
  ended.get_future().wait();
  proxy_.join();
  EXPECT_TRUE(connect_to(port));
}

TEST_F(HandoverTest, NoDatagramIsRefused) {
  UdpServer server;
  proxy::ListenerConfig made = config(1, {server.port()});
  made.protocol = Protocol::udp;
  made.idle = 60s;
  const std::uint16_t port = listen(made);
  const UdpPeer client(port);
  ASSERT_EQ(client.ask("one"), "one");

  hand_over(Protocol::udp);
  ASSERT_EQ(take_over(same(made, port)), port);
  std::promise<void> ended;
  proxy_.begin_stop(60s, [&] { ended.set_value(); }, true);
  for (int i = 0; i < 20; ++i) ASSERT_EQ(client.ask("more"), "more") << i;
  ended.get_future().wait();  // its flow is quiet
  proxy_.join();
  EXPECT_EQ(client.ask("more"), "more");
}

TEST_F(HandoverTest, WhatNobodyTookIsClosed) {
  Server server(echo);
  const std::uint16_t port = listen(config(1, {server.port()}));
  hand_over(Protocol::tcp);
  stop(0ms);
  EXPECT_TRUE(connect_to(port)) << "the next one holds it";
  next_.table().drop_inherited();
  EXPECT_FALSE(connect_to(port));
}

TEST_F(HandoverTest, WhatIsNoListeningSocketIsRefused) {
  EXPECT_FALSE(next_.table().inherit(UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), Protocol::tcp));
  EXPECT_FALSE(next_.table().inherit(UniqueFd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)), Protocol::tcp));
  EXPECT_FALSE(next_.table().inherit(listen_on_loopback(), Protocol::udp));
  EXPECT_FALSE(next_.table().inherit(UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC)), Protocol::tcp));
  EXPECT_FALSE(next_.table().inherit(UniqueFd(), Protocol::tcp));
}

}  // namespace
}  // namespace holdfast::testing
