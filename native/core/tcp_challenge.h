#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "conntrack_entry.h"
#include "unique_fd.h"

namespace holdfast::net {

/// An IPv6 and a TCP header.
constexpr std::size_t kMostSegmentBytes = 60;

/// The packet of an empty ACK with these numbers, from one end to the other. Returns its bytes: 40 or 60.
std::size_t write_segment(const SocketAddress& from, const SocketAddress& to, std::uint32_t sequence, std::uint32_t acknowledgement,
                          std::array<std::uint8_t, kMostSegmentBytes>& packet) noexcept;

struct Challenged {
  /// Segments: two for each entry.
  std::uint32_t sent = 0;
  /// No route, no such address …; the first of these errors is a negative errno with its words.
  std::uint32_t failed = 0;
  int error = 0;
  std::string text;
};

/// Sends, for each TCP entry, an empty ACK with random numbers to both ends, as if from the other: to the client from the address that it knows, to
/// the server from the address that it sees. Either answers with a challenge ACK of its true numbers (RFC 5961 section 5), also when it is idle: a rule can
/// then answer it by a reset that it believes. `mark` is the packets' (SO_MARK), so that rules can leave them untracked. The kernel answers one
/// challenge in 500 ms for each socket (tcp_invalid_ratelimit). Needs CAP_NET_RAW and CAP_NET_ADMIN.
Challenged challenge(const std::vector<conntrack::Entry>& entries, std::uint32_t mark);

}  // namespace holdfast::net
