#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "socket_address.h"

namespace holdfast::net {

using Mac = std::array<std::uint8_t, 6>;

/// What is said about an address on its link. `announce`: it is here (RFC 5227 section 3, RFC 4861 section 7.2.6). `probe`: who has it?
enum class Neighbour : std::uint8_t { announce, probe };

/// An Ethernet frame with an ARP request (RFC 826) from `own` about an IPv4 address.
std::vector<std::uint8_t> arp_frame(Neighbour what, const Mac& own, const SocketAddress& address);

/// An ICMPv6 message, without the IPv6 header and with a checksum of zero, which the kernel fills in.
std::vector<std::uint8_t> icmp6_message(Neighbour what, const Mac& own, const SocketAddress& address);

/// Who says in an ARP frame that it has the address; undefined for anything else, also for what is cut off.
std::optional<Mac> arp_claim(const std::uint8_t* frame, std::size_t size, const SocketAddress& address) noexcept;

/// The same of an ICMPv6 message.
std::optional<Mac> icmp6_claim(const std::uint8_t* message, std::size_t size, const SocketAddress& address) noexcept;

/// Sends one packet. An interface that is no Ethernet has no neighbours to tell: nothing is sent. Needs CAP_NET_RAW.
/// Returns 0 or the negative errno.
int tell_neighbours(Neighbour what, const std::string& interface, const SocketAddress& address);

/// A descriptor that collects what others say of the address, until it is closed; a negative errno.
int watch_neighbours(const std::string& interface, const SocketAddress& address);

/// Another machine that has claimed the address since the last call. Never blocks.
std::optional<Mac> read_claim(int fd, const std::string& interface, const SocketAddress& address);

}  // namespace holdfast::net
