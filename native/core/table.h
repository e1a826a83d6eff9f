#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "socket_address.h"

namespace holdfast::proxy {

using ListenerId = std::uint32_t;

enum class Algorithm : std::uint8_t { random = 0, round_robin = 1 };

struct Endpoint {
  net::SocketAddress address;
  /// 1 to 100.
  std::uint8_t weight = 1;

  bool operator==(const Endpoint&) const = default;
};

/// One service port, whole.
struct ListenerConfig {
  ListenerId id = 0;
  /// Port 0 asks the kernel for a free one.
  net::SocketAddress address;
  Algorithm algorithm = Algorithm::random;
  /// How long running connections of a withdrawn endpoint may go on.
  std::chrono::milliseconds drain{};
  /// For each endpoint that is tried.
  std::chrono::milliseconds connect_timeout{};
  std::vector<Endpoint> endpoints;

  bool operator==(const ListenerConfig&) const = default;
};

struct TableDelta {
  std::vector<ListenerId> remove;
  std::vector<ListenerConfig> upsert;
};

}  // namespace holdfast::proxy
