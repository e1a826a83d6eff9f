#include "udp_batch.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "udp_peers.h"

namespace holdfast::testing {
namespace {

using proxy::UdpClient;
using proxy::UdpInbox;
using proxy::UdpOutbox;

constexpr std::size_t kEthernet = 1'472;

std::span<std::uint8_t> bytes(std::string& text) { return {reinterpret_cast<std::uint8_t*>(text.data()), text.size()}; }

/// What arrives at a socket when `sizes` are sent to it in one outbox.
std::vector<std::size_t> sent(const std::vector<std::size_t>& sizes, std::size_t limit) {
  const UniqueFd receiver = udp_socket();
  const UdpPeer sender(port_of(receiver.get()));
  const auto out = std::make_unique<UdpOutbox>();
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < sizes.size(); ++i) texts.emplace_back(sizes[i], static_cast<char>('a' + i % 26));
  for (std::string& text : texts) out->add(nullptr, bytes(text), limit);
  EXPECT_EQ(out->left(), sizes.size());
  const auto result = out->send(sender.fd());
  EXPECT_EQ(result.error, 0);
  EXPECT_EQ(result.datagrams, sizes.size());
  EXPECT_TRUE(out->empty());
  const auto in = std::make_unique<UdpInbox>();
  std::vector<std::size_t> arrived;
  const int count = in->receive(receiver.get(), 0, proxy::kUdpBatch);
  for (int i = 0; i < count; ++i) {
    const auto datagram = in->datagram(static_cast<std::size_t>(i));
    arrived.push_back(datagram.size());
    EXPECT_EQ(std::string(datagram.begin(), datagram.end()), texts[static_cast<std::size_t>(i)]);
    EXPECT_EQ(in->from(static_cast<std::size_t>(i)).address().port, sender.port());
  }
  return arrived;
}

TEST(UdpBatch, KeepsDatagramsApartAndInOrder) {
  for (const std::size_t limit : {kEthernet, std::size_t{0}}) {
    const std::vector<std::size_t> mixed{64, 64, 64, 10, 64, 0, 0, 1, 2, 1'472, 1'472, 100, 9'000, 9'000, 65'507};
    EXPECT_EQ(sent(mixed, limit), mixed) << limit;
    const std::vector<std::size_t> same(proxy::kUdpBatch, 1'200);
    EXPECT_EQ(sent(same, limit), same) << limit;
  }
}

TEST(UdpBatch, SendsOneByOneWhatTheWayDoesNotTakeJoined) {
  // 40,000 joined twice exceed what the kernel takes as one, and 33,000 the loopback's MTU when the limit allows it.
  const std::vector<std::size_t> large{40'000, 40'000, 33'000, 33'000};
  EXPECT_EQ(sent(large, proxy::kUdpRoom), large);
}

TEST(UdpBatch, AnErrorLeavesTheRestToTheCaller) {
  const UdpPeer sender(dead_udp_port());
  const auto out = std::make_unique<UdpOutbox>();
  std::string one = "one";
  std::string two = "other";
  sender.send("provokes an ICMP error");
  ASSERT_EQ(sender.error(), ECONNREFUSED);
  sender.send("again");
  pollfd poll{sender.fd(), 0, 0};
  ASSERT_EQ(::poll(&poll, 1, 2'000), 1);
  out->add(nullptr, bytes(one), 0);
  out->add(nullptr, bytes(two), 0);
  EXPECT_EQ(out->send(sender.fd()).error, ECONNREFUSED);
  EXPECT_EQ(out->left(), 2U);
  EXPECT_EQ(out->drop_front(), 1U);
  EXPECT_EQ(out->left(), 1U);
}

TEST(UdpBatch, DatagramsOfSeveralReceiversAreNotJoined) {
  const UniqueFd first = udp_socket();
  const UniqueFd second = udp_socket();
  const UniqueFd from = udp_socket();
  const auto out = std::make_unique<UdpOutbox>();
  std::string text = "same size";
  for (int i = 0; i < 3; ++i) {
    for (const int receiver : {first.get(), second.get()}) {
      UdpClient to;
      socklen_t size = UdpClient::kRoom;
      ::getsockname(receiver, static_cast<sockaddr*>(to.room()), &size);
      out->add(&to, bytes(text), kEthernet);
    }
  }
  EXPECT_EQ(out->send(from.get()).datagrams, 6U);
  const auto in = std::make_unique<UdpInbox>();
  EXPECT_EQ(in->receive(first.get(), 0, 8), 3);
  EXPECT_EQ(in->receive(second.get(), 0, 8), 3);
  EXPECT_EQ(in->receive(second.get(), 0, 8), -EAGAIN);
}

}  // namespace
}  // namespace holdfast::testing
