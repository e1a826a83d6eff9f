#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>

#include <cstring>

#include "proxy_fixture.h"

namespace holdfast::testing {
namespace {

constexpr std::uint16_t kFirstPort = 40'000;
constexpr int kPorts = 20;
constexpr int kEndpoints = 10;

/// This thread, and those that it starts, in a network of their own, whose sockets get one of 20 ports. False without the right to it.
bool enter_small_network() {
  if (::unshare(CLONE_NEWNET) != 0) return false;
  const UniqueFd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq loopback{};
  std::strcpy(loopback.ifr_name, "lo");
  loopback.ifr_flags = IFF_UP | IFF_RUNNING;
  if (::ioctl(fd.get(), SIOCSIFFLAGS, &loopback) != 0) return false;
  const UniqueFd range(::open("/proc/sys/net/ipv4/ip_local_port_range", O_WRONLY | O_CLOEXEC));
  const std::string text = std::to_string(kFirstPort) + " " + std::to_string(kFirstPort + kPorts - 1);
  return ::write(range.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

UniqueFd listen_on(std::uint16_t port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const net::RawAddress address(SocketAddress::loopback(port));
  if (::bind(fd.get(), address.data(), address.size()) != 0 || ::listen(fd.get(), 512) != 0) return {};
  return fd;
}

/// From 127.0.1.`host`: each has 20 ports of its own.
UniqueFd connect_from(std::uint8_t host, std::uint16_t port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  ::setsockopt(fd.get(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
  SocketAddress source = SocketAddress::loopback(0);
  source.bytes = {127, 0, 1, host};
  const net::RawAddress from(source);
  const net::RawAddress to(SocketAddress::loopback(port));
  if (::bind(fd.get(), from.data(), from.size()) != 0 || ::connect(fd.get(), to.data(), to.size()) != 0) return {};
  return fd;
}

/// `Proxy` and its threads live inside, the test's own thread stays outside.
void fill_up(std::string& problem) {
  if (!enter_small_network()) {
    problem = "needs a network namespace";
    return;
  }
  std::vector<UniqueFd> servers;
  proxy::ListenerConfig config;
  config.id = 1;
  config.address = SocketAddress::loopback(30'000);
  config.connect_timeout = 2s;
  for (int i = 0; i < kEndpoints; ++i) {
    const auto port = static_cast<std::uint16_t>(20'000 + i);
    servers.push_back(listen_on(port));
    config.endpoints.push_back({SocketAddress::loopback(port), 1, 0});
  }
  int ejections = 0;
  proxy::Settings settings;
  settings.threads = 2;
  proxy::Proxy proxy(settings, [&](proxy::Event) { ++ejections; });
  ASSERT_FALSE(proxy.apply({{}, {config}}, nullptr).at(0).error);
  const auto active = [&] { return proxy.table().stats(1)->active; };
  std::vector<UniqueFd> clients;
  for (int i = 0; i < kPorts * kEndpoints; ++i) {
    clients.push_back(connect_from(static_cast<std::uint8_t>(1 + i % 20), 30'000));
    ASSERT_TRUE(clients.back()) << i;
  }
  std::uint64_t connected = 0;
  for (int i = 0; i < 5'000 && connected < clients.size(); ++i) {
    std::this_thread::sleep_for(1ms);
    connected = 0;
    const auto endpoints = proxy.table().stats(1)->endpoints;
    for (const auto& endpoint : endpoints) connected += endpoint.active;
  }
  EXPECT_EQ(connected, 200U);
  EXPECT_EQ(active(), 200U);
  const auto failures = proxy.table().stats(1)->dial_failures;
  EXPECT_GT(failures, 0U);
  // No endpoint has a port left for one more: tried all ten, and none of them is to blame.
  EXPECT_EQ(end_of(connect_from(30, 30'000).get()), End::reset);
  EXPECT_EQ(proxy.table().stats(1)->dial_failures, failures + kEndpoints);
  EXPECT_EQ(ejections, 0);
}

/// Source ports ran out at 28,000 connections in all, though they are only needed per destination.
TEST(SourcePorts, AreSharedBetweenDestinations) {
  std::string problem;
  std::thread inside([&] { fill_up(problem); });
  inside.join();
  if (!problem.empty()) GTEST_SKIP() << problem;
}

}  // namespace
}  // namespace holdfast::testing
