#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "socket_address.h"
#include "table.h"

namespace holdfast::proxy {

/// Whose connection it is, as a PROXY protocol header tells (haproxy.org, proxy-protocol.txt).
struct ProxyAddresses {
  net::SocketAddress source;
  net::SocketAddress destination;

  bool operator==(const ProxyAddresses&) const = default;
};

/// A header that is not whole after this many bytes is refused. Version 1 has at most 107; in version 2 the addresses take 52 at most and
/// the rest are TLVs (a client's certificate, for example).
constexpr std::size_t kMostProxyHeader = 4096;
/// What `write_proxy_header` writes at most.
constexpr std::size_t kMostWrittenHeader = 108;

struct ParsedHeader {
  enum class State : std::uint8_t { incomplete, complete, malformed };

  State state;
  /// Of a complete one: the bytes behind it are the client's.
  std::size_t size = 0;
  /// Absent when the header says that the connection is the proxy's own (LOCAL) or says nothing usable (UNKNOWN, unix, datagrams): then the
  /// connection's own addresses count.
  std::optional<ProxyAddresses> addresses = std::nullopt;
};

/// Reads a header of either version from the stream's first bytes. Malformed as soon as no continuation could be well-formed.
ParsedHeader parse_proxy_header(std::span<const std::uint8_t> bytes) noexcept;

/// Writes the header of `version` (1 or 2) and returns its size. Addresses of different families become UNKNOWN or LOCAL.
std::size_t write_proxy_header(ProxyHeader version, const ProxyAddresses& addresses, std::span<std::uint8_t, kMostWrittenHeader> out) noexcept;

}  // namespace holdfast::proxy
