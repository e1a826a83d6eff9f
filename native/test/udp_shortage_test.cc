#include <sys/resource.h>

#include "proxy_fixture.h"
#include "udp_peers.h"

namespace holdfast::testing {
namespace {

/// Without descriptors older flows give way to newer ones, and no datagram is lost.
TEST_F(ProxyTest, UdpFlowsGiveWayWhenDescriptorsRunOut) {
  UdpServer server;
  auto service = config(1, {server.port()});
  service.protocol = proxy::Protocol::udp;
  const std::uint16_t port = listen(service);
  std::vector<UdpPeer> clients;
  for (int i = 0; i < 40; ++i) clients.emplace_back(port);
  EXPECT_EQ(clients[0].ask("first"), "first");  // what the worker needs beside is open now

  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  rlimit low = before;
  low.rlim_cur = static_cast<rlim_t>(::dup(0));
  ::close(static_cast<int>(low.rlim_cur));
  low.rlim_cur += 10;
  ::setrlimit(RLIMIT_NOFILE, &low);
  for (int round = 0; round < 2; ++round) {
    for (const UdpPeer& client : clients) EXPECT_EQ(client.ask("x"), "x");
  }
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_LE(stats(1).active, 11U);
  EXPECT_GE(stats(1).evicted, 60U);
  EXPECT_EQ(stats(1).dropped, 0U);
  EXPECT_GE(pauses(), 1);
}

}  // namespace
}  // namespace holdfast::testing
