#include "neighbour.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <random>

namespace holdfast::net {
namespace {

constexpr Mac kOwn{0x02, 0, 0, 0, 0, 0x07};

SocketAddress address(const char* text) {
  SocketAddress made;
  made.family = std::string(text).find(':') == std::string::npos ? Family::ipv4 : Family::ipv6;
  ::inet_pton(made.family == Family::ipv4 ? AF_INET : AF_INET6, text, made.bytes.data());
  return made;
}

TEST(Neighbour, AnAnnouncementIsAnArpRequestForOnesOwnAddress) {
  const std::vector<std::uint8_t> expected{
      0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 7, 8, 6,                                // Ethernet
      0,    1,    8,    0,    6,    4,    0, 1,                                                   // request
      2,    0,    0,    0,    0,    7,    10, 9, 0, 100, 0, 0, 0, 0, 0, 0, 10, 9, 0, 100};  // sender, target
  EXPECT_EQ(arp_frame(Neighbour::announce, kOwn, address("10.9.0.100")), expected);
}

TEST(Neighbour, AProbeClaimsNothing) {
  const auto frame = arp_frame(Neighbour::probe, kOwn, address("10.9.0.100"));
  EXPECT_EQ(std::vector<std::uint8_t>(frame.begin() + 28, frame.begin() + 32), std::vector<std::uint8_t>(4));
  EXPECT_EQ(arp_claim(frame.data(), frame.size(), address("10.9.0.100")), std::nullopt);
}

TEST(Neighbour, AClaimIsOfTheSender) {
  const auto frame = arp_frame(Neighbour::announce, kOwn, address("10.9.0.100"));
  EXPECT_EQ(arp_claim(frame.data(), frame.size(), address("10.9.0.100")), kOwn);
  EXPECT_EQ(arp_claim(frame.data(), frame.size(), address("10.9.0.101")), std::nullopt);
}

TEST(Neighbour, AnAdvertisementOverridesAndIsAClaim) {
  const auto message = icmp6_message(Neighbour::announce, kOwn, address("fd00::7"));
  EXPECT_EQ(message[0], 136);
  EXPECT_EQ(message[4], 0x20);
  EXPECT_EQ(icmp6_claim(message.data(), message.size(), address("fd00::7")), kOwn);
  EXPECT_EQ(icmp6_claim(message.data(), message.size(), address("fd00::8")), std::nullopt);
  const auto probe = icmp6_message(Neighbour::probe, kOwn, address("fd00::7"));
  EXPECT_EQ(icmp6_claim(probe.data(), probe.size(), address("fd00::7")), std::nullopt);
}

TEST(Neighbour, WhatIsCutOffIsNoClaim) {
  const auto frame = arp_frame(Neighbour::announce, kOwn, address("10.9.0.100"));
  for (std::size_t size = 0; size < frame.size(); ++size) EXPECT_EQ(arp_claim(frame.data(), size, address("10.9.0.100")), std::nullopt);
  const auto message = icmp6_message(Neighbour::announce, kOwn, address("fd00::7"));
  for (std::size_t size = 0; size < message.size(); ++size) EXPECT_EQ(icmp6_claim(message.data(), size, address("fd00::7")), std::nullopt);
}

TEST(Neighbour, NoiseIsReadWithinItsBounds) {
  std::mt19937 random(7);
  for (int round = 0; round < 20'000; ++round) {
    std::vector<std::uint8_t> noise(random() % 64);
    for (auto& byte : noise) byte = static_cast<std::uint8_t>(random());
    (void)arp_claim(noise.data(), noise.size(), address("10.9.0.100"));
    (void)icmp6_claim(noise.data(), noise.size(), address("fd00::7"));
  }
}

TEST(Neighbour, AnInterfaceThatIsNoneIsNamed) { EXPECT_EQ(tell_neighbours(Neighbour::announce, "no-such", address("10.9.0.100")), -ENODEV); }

TEST(Neighbour, NobodyIsToldOnWhatIsNoEthernet) { EXPECT_EQ(tell_neighbours(Neighbour::announce, "lo", address("10.9.0.100")), 0); }

}  // namespace
}  // namespace holdfast::net
