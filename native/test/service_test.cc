// What a service may ask of its listener: limits, idle time, ejection, affinity, PROXY headers.

#include "proxy_fixture.h"
#include "proxy_header.h"

namespace holdfast::testing {
namespace {

using proxy::Outcome;
using proxy::ProxyHeader;

bool echoes(int fd, const std::string& text = "a") { return send_all(fd, text) && receive(fd, text.size()) == text; }

class ServiceTest : public ProxyTest {
 protected:
  ServiceTest() : ProxyTest(quick_ejection()) {}

  static proxy::Settings quick_ejection() {
    proxy::Settings settings;
    settings.ejection_failures = 3;
    settings.ejection_return = 300ms;
    return settings;
  }

  Server server_{echo};
};

TEST_F(ServiceTest, RefusesWhatIsBeyondTheLimitAtOnce) {
  auto limited = config(1, {server_.port()});
  limited.max_connections = 3;
  const std::uint16_t port = listen(limited);
  std::vector<UniqueFd> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(connect_to(port));
    ASSERT_TRUE(echoes(clients.back().get()));
  }
  for (int i = 0; i < 5; ++i) EXPECT_EQ(end_of(connect_to(port).get(), 1'000), End::reset);
  EXPECT_EQ(stats(1).limited, 5U);
  EXPECT_EQ(ended(1, Outcome::refused), 5U);
  for (const UniqueFd& client : clients) EXPECT_TRUE(echoes(client.get()));
  clients.pop_back();
  ASSERT_TRUE(eventually([&] { return stats(1).active == 2; }));
  EXPECT_TRUE(echoes(connect_to(port).get()));
}

TEST_F(ServiceTest, RefusesNewConnectionsWhileItIsToldToAndKeepsTheRunningOnes) {
  auto service = config(1, {server_.port()});
  service.address.port = listen(service);
  const UniqueFd running = connect_to(service.address.port);
  ASSERT_TRUE(echoes(running.get()));
  service.refuse = true;
  apply({{}, {service}});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(end_of(connect_to(service.address.port).get(), 1'000), End::reset);
  EXPECT_TRUE(echoes(running.get()));
  EXPECT_EQ(ended(1, Outcome::refused), 3U);
  EXPECT_EQ(stats(1).active, 1U);
  service.refuse = false;
  apply({{}, {service}});
  EXPECT_TRUE(echoes(connect_to(service.address.port).get()));
  EXPECT_TRUE(echoes(running.get()));
}

class FewConnections : public ProxyTest {
 protected:
  static proxy::Settings four() {
    proxy::Settings settings;
    settings.max_connections = 4;
    return settings;
  }
  FewConnections() : ProxyTest(four()) {}
};

TEST_F(FewConnections, TheLimitInAllHoldsForAllListenersTogether) {
  Server server(echo);
  const std::uint16_t one = listen(config(1, {server.port()}));
  const std::uint16_t two = listen(config(2, {server.port()}));
  std::vector<UniqueFd> clients;
  for (const std::uint16_t port : {one, two, one, two}) {
    clients.push_back(connect_to(port));
    ASSERT_TRUE(echoes(clients.back().get()));
  }
  EXPECT_EQ(end_of(connect_to(one).get(), 1'000), End::reset);
  EXPECT_EQ(end_of(connect_to(two).get(), 1'000), End::reset);
  EXPECT_EQ(proxy_.info().connections, 4U);
  EXPECT_EQ(proxy_.info().connection_limit, 4U);
  clients.clear();
  EXPECT_TRUE(eventually([&] { return proxy_.info().connections == 0; }));
}

TEST_F(ServiceTest, AnIdleConnectionIsReset) {
  auto impatient = config(1, {server_.port()});
  impatient.idle = 300ms;
  const std::uint16_t port = listen(impatient);
  const UniqueFd busy = connect_to(port);
  const UniqueFd idle = connect_to(port);
  ASSERT_TRUE(echoes(idle.get()));
  const auto begun = std::chrono::steady_clock::now();
  for (int i = 0; i < 12; ++i) {
    ASSERT_TRUE(echoes(busy.get()));
    std::this_thread::sleep_for(50ms);
  }
  EXPECT_EQ(end_of(idle.get(), 0), End::reset);
  EXPECT_TRUE(echoes(busy.get()));
  EXPECT_EQ(end_of(busy.get(), 5'000), End::reset);
  EXPECT_GE(std::chrono::steady_clock::now() - begun, 850ms);
  EXPECT_TRUE(eventually([&] { return ended(1, Outcome::reset) == 2; }));
}

TEST_F(ServiceTest, AnEndpointThatRefusesIsEjectedAndReturnsInTime) {
  const std::uint16_t dead = dead_port();
  const std::uint16_t port = listen(config(1, {dead, server_.port()}));
  while (ejected().empty()) ASSERT_TRUE(echoes(connect_to(port).get()));
  EXPECT_EQ(ejected()[0].endpoint, SocketAddress::loopback(dead));
  const auto failures = stats(1).dial_failures;
  EXPECT_GE(failures, 3U);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(echoes(connect_to(port).get()));
  EXPECT_LE(stats(1).dial_failures, failures + 1);  // of a worker that had chosen it before
  const auto endpoints = stats(1).endpoints;
  EXPECT_EQ(std::count_if(endpoints.begin(), endpoints.end(), [](const auto& e) { return e.ejected; }), 1);
  ASSERT_TRUE(eventually([&] { return ejected().size() == 2; }));
  EXPECT_TRUE(ejected()[1].returned);
  // On probation: once is enough.
  while (ejected().size() < 3) ASSERT_TRUE(echoes(connect_to(port).get()));
  EXPECT_LE(stats(1).dial_failures, failures + 3);
}

TEST_F(ServiceTest, WhenAllAreEjectedTheyAreTriedAllTheSame) {
  UniqueFd socket = listen_on_loopback();
  const std::uint16_t only = port_of(socket.get());
  socket.reset();
  const std::uint16_t port = listen(config(1, {only}));
  while (ejected().empty()) EXPECT_EQ(end_of(connect_to(port).get()), End::reset);
  UniqueFd back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  ::setsockopt(back.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const net::RawAddress address(SocketAddress::loopback(only));
  ASSERT_EQ(::bind(back.get(), address.data(), address.size()), 0);
  ASSERT_EQ(::listen(back.get(), 16), 0);
  const UniqueFd client = connect_to(port);
  send_all(client.get(), "hi");
  const UniqueFd accepted(::accept(back.get(), nullptr, nullptr));
  EXPECT_EQ(receive(accepted.get(), 2), "hi");
  ASSERT_TRUE(eventually([&] { return ejected().size() == 2; }));
  EXPECT_TRUE(ejected()[1].returned);
  EXPECT_FALSE(stats(1).endpoints.at(0).ejected);
}

TEST_F(ServiceTest, AWithdrawnEndpointThatComesBackIsNotEjected) {
  const std::uint16_t dead = dead_port();
  const std::uint16_t port = listen(config(1, {dead, server_.port()}));
  while (ejected().empty()) ASSERT_TRUE(echoes(connect_to(port).get()));
  listen(config(1, {server_.port()}));
  listen(config(1, {dead, server_.port()}));
  const auto endpoints = stats(1).endpoints;
  for (const auto& endpoint : endpoints) EXPECT_FALSE(endpoint.ejected);
  std::this_thread::sleep_for(400ms);
  EXPECT_EQ(ejected().size(), 1U);
}

TEST_F(ServiceTest, AClientStaysWithItsEndpointWhicheverWorkerItMeets) {
  Server second(echo);
  Server third(echo);
  for (const auto algorithm : {proxy::Algorithm::random, proxy::Algorithm::round_robin, proxy::Algorithm::least_connections}) {
    const auto id = static_cast<proxy::ListenerId>(algorithm) + 1;
    auto sticky = config(id, {server_.port(), second.port(), third.port()});
    sticky.algorithm = algorithm;
    sticky.affinity = 60s;
    const std::uint16_t port = listen(sticky);
    for (int i = 0; i < 30; ++i) ASSERT_TRUE(echoes(connect_to(port).get()));
    const auto endpoints = stats(id).endpoints;
    EXPECT_EQ(std::count_if(endpoints.begin(), endpoints.end(), [](const auto& e) { return e.total == 30; }), 1);
  }
}

TEST_F(ServiceTest, LeastConnectionsCountsThoseOfAllWorkers) {
  Server second(echo);
  auto least = config(1, {server_.port(), second.port()});
  least.algorithm = proxy::Algorithm::least_connections;
  const std::uint16_t port = listen(least);
  std::vector<UniqueFd> clients;
  for (int i = 0; i < 40; ++i) {
    clients.push_back(connect_to(port));
    ASSERT_TRUE(echoes(clients.back().get()));
  }
  const auto endpoints = stats(1).endpoints;
  for (const auto& endpoint : endpoints) EXPECT_EQ(endpoint.active, 20U);
}

class ProxyHeaderTest : public ServiceTest {
 protected:
  std::uint16_t listen_with(bool accept, ProxyHeader send) {
    auto proxied = config(1, {server_.port()});
    proxied.accept_proxy = accept;
    proxied.send_proxy = send;
    return ProxyTest::listen(proxied);
  }
};

TEST_F(ProxyHeaderTest, TellsTheEndpointWhoTheClientIs) {
  for (const ProxyHeader version : {ProxyHeader::v1, ProxyHeader::v2}) {
    const std::uint16_t port = listen_with(false, version);
    const UniqueFd client = connect_to(port);
    const proxy::ProxyAddresses addresses{SocketAddress::loopback(port_of(client.get())), SocketAddress::loopback(port)};
    std::array<std::uint8_t, proxy::kMostWrittenHeader> header;
    const std::size_t size = proxy::write_proxy_header(version, addresses, header);
    // Without a word of the client: the server may be the one that speaks first.
    EXPECT_EQ(receive(client.get(), size), std::string(header.begin(), header.begin() + static_cast<std::ptrdiff_t>(size)));
    EXPECT_TRUE(echoes(client.get(), "hello"));
  }
  EXPECT_EQ(stats(1).bytes_in, 10U);
}

TEST_F(ProxyHeaderTest, PassesOnWhatItWasTold) {
  const UniqueFd client = connect_to(listen_with(true, ProxyHeader::v1));
  const std::string header = "PROXY TCP4 1.2.3.4 5.6.7.8 258 443\r\n";
  send_all(client.get(), header + "hello");
  EXPECT_EQ(receive(client.get(), header.size() + 5), header + "hello");
  EXPECT_TRUE(echoes(client.get(), "more"));
  EXPECT_TRUE(eventually([&] { return stats(1).bytes_in == 9; }));
}

TEST_F(ProxyHeaderTest, AHeaderMayComeByteByByteAndIsNotPassedOn) {
  const UniqueFd client = connect_to(listen_with(true, ProxyHeader::none));
  for (const char byte : std::string("PROXY UNKNOWN\r\nhel")) {
    ASSERT_TRUE(send_all(client.get(), {byte}));
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_EQ(receive(client.get(), 3), "hel");
  send_all(client.get(), "lo");
  ::shutdown(client.get(), SHUT_WR);
  std::string rest;
  EXPECT_EQ(read_to_end(client.get(), rest), End::eof);
  EXPECT_EQ(rest, "lo");
}

TEST_F(ProxyHeaderTest, AHeaderAndTheWholeStreamAtOnce) {
  const UniqueFd client = connect_to(listen_with(true, ProxyHeader::v2));
  const std::string sent = "PROXY UNKNOWN\r\n" + std::string(300'000, 'x');
  std::thread sender([&] {
    send_all(client.get(), sent);
    ::shutdown(client.get(), SHUT_WR);
  });
  std::string got;
  EXPECT_EQ(read_to_end(client.get(), got), End::eof);
  sender.join();
  EXPECT_EQ(got.size(), 28U + 300'000U);
  EXPECT_EQ(got.substr(28), sent.substr(15));
  EXPECT_TRUE(eventually([&] { return stats(1).bytes_in == 300'000; }));
}

TEST_F(ProxyHeaderTest, WhoHasNoneIsRefused) {
  const std::uint16_t port = listen_with(true, ProxyHeader::none);
  const UniqueFd other = connect_to(port);
  send_all(other.get(), "GET / HTTP/1.1\r\n");
  EXPECT_EQ(end_of(other.get(), 1'000), End::reset);
  const UniqueFd short_one = connect_to(port);
  send_all(short_one.get(), "PROXY TCP4 ");
  ::shutdown(short_one.get(), SHUT_WR);
  EXPECT_EQ(end_of(short_one.get(), 1'000), End::reset);
  const UniqueFd silent = connect_to(port);
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_EQ(end_of(silent.get(), 8'000), End::reset);
  EXPECT_NEAR(std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count(), 5, 1);
  EXPECT_EQ(ended(1, Outcome::refused), 3U);
  EXPECT_EQ(stats(1).limited, 0U);
  EXPECT_EQ(server_.accepted(), 0);
}

TEST_F(ProxyHeaderTest, TheToldClientIsTheOneThatIsHashed) {
  Server second(echo);
  auto hashed = config(1, {server_.port(), second.port()});
  hashed.accept_proxy = true;
  hashed.algorithm = proxy::Algorithm::source_hash;
  const std::uint16_t port = ProxyTest::listen(hashed);
  const auto ask = [&](int client) {
    const UniqueFd fd = connect_to(port);
    send_all(fd.get(), "PROXY TCP4 10.0.0." + std::to_string(client) + " 5.6.7.8 1 2\r\nx");
    EXPECT_EQ(receive(fd.get(), 1), "x");
  };
  for (int i = 0; i < 10; ++i) ask(1);
  EXPECT_EQ(server_.accepted() * second.accepted(), 0);
  for (int i = 2; i < 200; ++i) ask(i);
  EXPECT_GT(server_.accepted(), 50);
  EXPECT_GT(second.accepted(), 50);
}

}  // namespace
}  // namespace holdfast::testing
