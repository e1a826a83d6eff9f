#include "neighbour.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/icmp6.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "unique_fd.h"

namespace holdfast::net {
namespace {

constexpr Mac kEverybody{0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
/// Ethernet header, and ARP of Ethernet and IPv4.
constexpr std::size_t kEthernet = 14;
constexpr std::size_t kArp = kEthernet + 28;
/// Of an advertisement and a solicitation alike: header, target, one option with a MAC.
constexpr std::size_t kTarget = 8;
constexpr std::size_t kOption = 24;
constexpr std::size_t kIcmp6 = 32;
/// Neighbours of other links are not believed (RFC 4861 section 7.1).
constexpr int kHopLimit = 255;
/// The target link-layer address option, and that of the source.
constexpr std::uint8_t kTargetMac = 2;
constexpr std::uint8_t kSourceMac = 1;

struct Interface {
  int index = 0;
  bool is_ethernet = false;
  Mac mac{};
};

int look_up(const std::string& name, Interface& found) {
  const UniqueFd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd) return -errno;
  ifreq request{};
  if (name.size() >= sizeof request.ifr_name) return -ENODEV;
  std::memcpy(request.ifr_name, name.c_str(), name.size());
  if (::ioctl(fd.get(), SIOCGIFINDEX, &request) != 0) return -errno;
  found.index = request.ifr_ifindex;
  if (::ioctl(fd.get(), SIOCGIFHWADDR, &request) != 0) return -errno;
  found.is_ethernet = request.ifr_hwaddr.sa_family == ARPHRD_ETHER;
  std::memcpy(found.mac.data(), request.ifr_hwaddr.sa_data, found.mac.size());
  return 0;
}

std::uint8_t* put(std::uint8_t* at, const void* data, std::size_t size) noexcept {
  std::memcpy(at, data, size);
  return at + size;
}

int open_arp(int index) {
  UniqueFd fd(::socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return -errno;
  sockaddr_ll local{};
  local.sll_family = AF_PACKET;
  local.sll_protocol = htons(ETH_P_ARP);
  local.sll_ifindex = index;
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&local), sizeof local) != 0) return -errno;
  return fd.release();
}

int open_icmp6(const std::string& interface) {
  UniqueFd fd(::socket(AF_INET6, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_ICMPV6));
  if (!fd) return -errno;
  icmp6_filter filter;
  ICMP6_FILTER_SETBLOCKALL(&filter);
  ICMP6_FILTER_SETPASS(ND_NEIGHBOR_ADVERT, &filter);
  const bool ready = ::setsockopt(fd.get(), SOL_SOCKET, SO_BINDTODEVICE, interface.c_str(), static_cast<socklen_t>(interface.size())) == 0 &&
                     ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_MULTICAST_HOPS, &kHopLimit, sizeof kHopLimit) == 0 &&
                     ::setsockopt(fd.get(), IPPROTO_ICMPV6, ICMP6_FILTER, &filter, sizeof filter) == 0;
  return ready ? fd.release() : -errno;
}

/// All nodes of the link, or those few whose addresses end like this one (RFC 4291 section 2.7.1).
sockaddr_in6 icmp6_destination(Neighbour what, const Interface& interface, const SocketAddress& address) {
  sockaddr_in6 to{};
  to.sin6_family = AF_INET6;
  to.sin6_scope_id = static_cast<std::uint32_t>(interface.index);
  ::inet_pton(AF_INET6, what == Neighbour::announce ? "ff02::1" : "ff02::1:ff00:0", &to.sin6_addr);
  if (what == Neighbour::probe) std::memcpy(to.sin6_addr.s6_addr + 13, address.bytes.data() + 13, 3);
  return to;
}

}  // namespace

std::vector<std::uint8_t> arp_frame(Neighbour what, const Mac& own, const SocketAddress& address) {
  std::vector<std::uint8_t> frame(kArp);
  const std::array<std::uint8_t, 4> nobody{};
  // Ethernet, IPv4, six and four bytes, request.
  constexpr std::array<std::uint8_t, 10> head{0x08, 0x06, 0, 1, 0x08, 0, 6, 4, 0, 1};
  std::uint8_t* at = put(frame.data(), kEverybody.data(), kEverybody.size());
  at = put(at, own.data(), own.size());
  at = put(at, head.data(), head.size());
  at = put(at, own.data(), own.size());
  // Who only asks must not change what its neighbours know (RFC 5227 section 2.1.1).
  at = put(at, what == Neighbour::announce ? address.bytes.data() : nobody.data(), 4);
  put(at + own.size(), address.bytes.data(), 4);
  return frame;
}

std::vector<std::uint8_t> icmp6_message(Neighbour what, const Mac& own, const SocketAddress& address) {
  std::vector<std::uint8_t> message(kIcmp6);
  const bool announces = what == Neighbour::announce;
  message[0] = announces ? ND_NEIGHBOR_ADVERT : ND_NEIGHBOR_SOLICIT;
  // Override: what they know of it is not true any more.
  if (announces) message[4] = 0x20;
  put(message.data() + kTarget, address.bytes.data(), address.bytes.size());
  message[kOption] = announces ? kTargetMac : kSourceMac;
  message[kOption + 1] = 1;
  put(message.data() + kOption + 2, own.data(), own.size());
  return message;
}

std::optional<Mac> arp_claim(const std::uint8_t* frame, std::size_t size, const SocketAddress& address) noexcept {
  constexpr std::array<std::uint8_t, 8> head{0x08, 0x06, 0, 1, 0x08, 0, 6, 4};
  if (size < kArp || address.family != Family::ipv4 || std::memcmp(frame + 12, head.data(), head.size()) != 0) return std::nullopt;
  if (std::memcmp(frame + 28, address.bytes.data(), 4) != 0) return std::nullopt;
  Mac sender;
  std::memcpy(sender.data(), frame + 22, sender.size());
  return sender;
}

std::optional<Mac> icmp6_claim(const std::uint8_t* message, std::size_t size, const SocketAddress& address) noexcept {
  if (size < kIcmp6 || address.family != Family::ipv6 || message[0] != ND_NEIGHBOR_ADVERT) return std::nullopt;
  if (std::memcmp(message + kTarget, address.bytes.data(), address.bytes.size()) != 0) return std::nullopt;
  if (message[kOption] != kTargetMac || message[kOption + 1] != 1) return std::nullopt;
  Mac sender;
  std::memcpy(sender.data(), message + kOption + 2, sender.size());
  return sender;
}

int tell_neighbours(Neighbour what, const std::string& interface, const SocketAddress& address) {
  Interface found;
  if (const int error = look_up(interface, found)) return error;
  if (!found.is_ethernet) return 0;
  if (address.family == Family::ipv4) {
    const UniqueFd fd(open_arp(found.index));
    if (!fd) return fd.get();
    const auto frame = arp_frame(what, found.mac, address);
    return ::send(fd.get(), frame.data(), frame.size(), 0) < 0 ? -errno : 0;
  }
  const UniqueFd fd(open_icmp6(interface));
  if (!fd) return fd.get();
  const auto message = icmp6_message(what, found.mac, address);
  const sockaddr_in6 to = icmp6_destination(what, found, address);
  return ::sendto(fd.get(), message.data(), message.size(), 0, reinterpret_cast<const sockaddr*>(&to), sizeof to) < 0 ? -errno : 0;
}

int watch_neighbours(const std::string& interface, const SocketAddress& address) {
  Interface found;
  if (const int error = look_up(interface, found)) return error;
  return address.family == Family::ipv4 ? open_arp(found.index) : open_icmp6(interface);
}

std::optional<Mac> read_claim(int fd, const std::string& interface, const SocketAddress& address) {
  Interface own;
  if (look_up(interface, own) != 0) return std::nullopt;
  std::array<std::uint8_t, 1'500> packet;
  // A link full of them is read in the next call.
  for (int packets = 0; packets < 1'000; ++packets) {
    const ssize_t size = ::recv(fd, packet.data(), packet.size(), MSG_DONTWAIT);
    if (size < 0) return std::nullopt;
    const auto bytes = static_cast<std::size_t>(size);
    const auto claim = address.family == Family::ipv4 ? arp_claim(packet.data(), bytes, address) : icmp6_claim(packet.data(), bytes, address);
    if (claim && *claim != own.mac) return claim;
  }
  return std::nullopt;
}

}  // namespace holdfast::net
