#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "netlink_message.h"
#include "socket_address.h"

namespace holdfast::conntrack {

using netlink::Bytes;

/// Of ICMP and ICMPv6 the source's port is the identifier, the destination's the type and the code (`type << 8 | code`); of protocols without
/// ports both are 0.
struct Tuple {
  net::SocketAddress source;
  net::SocketAddress destination;

  auto operator<=>(const Tuple&) const = default;
};

/// A connection that the kernel tracks.
struct Entry {
  /// IPPROTO_*.
  std::uint8_t protocol = 0;
  /// enum tcp_conntrack (linux/netfilter/nf_conntrack_tcp.h): 3 is established, 8 closed; 0 of other protocols.
  std::uint8_t tcp_state = 0;
  std::uint16_t zone = 0;
  /// The kernel's number for it: one that takes its place, with the same tuples, has another.
  std::uint32_t id = 0;
  std::uint32_t mark = 0;
  /// enum ip_conntrack_status (linux/netfilter/nf_conntrack_common.h).
  std::uint32_t status = 0;
  /// Seconds until it goes, if nothing comes.
  std::uint32_t timeout = 0;
  /// As its first packet was, before NAT; and as its answers come, after NAT: the reply's source is who really answers.
  Tuple original;
  Tuple reply;

  auto operator<=>(const Entry&) const = default;
};

/// Which end of an entry.
enum class Part : std::uint8_t { source = 0, destination = 1, backend = 2 };

/// `source` is the original's, `destination` the original's (a VIP), `backend` the reply's source.
struct Selector {
  Part part = Part::destination;
  /// 0: any.
  std::uint8_t protocol = 0;
  /// Port 0: any.
  net::SocketAddress address;
};

/// All of it must hold, and one of `any_of` unless there is none.
struct Filter {
  std::optional<net::Family> family = std::nullopt;
  /// 0: any.
  std::uint8_t protocol = 0;
  /// Of the mark, these bits have this value; mask 0: any.
  std::uint32_t mark = 0;
  std::uint32_t mark_mask = 0;
  std::optional<std::uint16_t> zone = std::nullopt;
  std::vector<Selector> any_of = {};
};

}  // namespace holdfast::conntrack
