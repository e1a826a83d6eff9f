#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "socket_address.h"

namespace holdfast::proxy {

using ListenerId = std::uint32_t;

enum class Protocol : std::uint8_t { tcp = 0, udp = 1 };
enum class Algorithm : std::uint8_t { random = 0, round_robin = 1, least_connections = 2, source_hash = 3 };
/// Which PROXY protocol header precedes the bytes.
enum class ProxyHeader : std::uint8_t { none = 0, v1 = 1, v2 = 2 };

struct Endpoint {
  net::SocketAddress address;
  /// 1 to 100.
  std::uint8_t weight = 1;
  /// 0 or 1: those of 1 are chosen only while none of 0 can be.
  std::uint8_t tier = 0;

  bool operator==(const Endpoint&) const = default;
};

/// One service port, whole.
struct ListenerConfig {
  ListenerId id = 0;
  Protocol protocol = Protocol::tcp;
  /// Port 0 asks the kernel for a free one.
  net::SocketAddress address;
  Algorithm algorithm = Algorithm::random;
  /// TCP: every client begins with a header of either version, or is refused.
  bool accept_proxy = false;
  /// TCP: what endpoints are sent first.
  ProxyHeader send_proxy = ProxyHeader::none;
  /// How long running connections of a withdrawn endpoint may go on.
  std::chrono::milliseconds drain{};
  /// For each endpoint that is tried.
  std::chrono::milliseconds connect_timeout{};
  /// A client address keeps its endpoint for this long after its last new connection; 0 is off.
  std::chrono::milliseconds affinity{};
  /// What has had no byte in either direction for this long ends; 0 is never.
  std::chrono::milliseconds idle{};
  /// Open connections or flows at most; 0 is no limit.
  std::uint32_t max_connections = 0;
  /// New connections and flows are refused, whatever the endpoints; running ones go on.
  bool refuse = false;
  std::vector<Endpoint> endpoints;

  bool operator==(const ListenerConfig&) const = default;
};

struct TableDelta {
  std::vector<ListenerId> remove;
  std::vector<ListenerConfig> upsert;
};

}  // namespace holdfast::proxy
