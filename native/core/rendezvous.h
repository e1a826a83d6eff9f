#pragma once

#include <cmath>
#include <cstdint>
#include <span>

#include "socket_address.h"

namespace holdfast::proxy {

/// The finalizer of splitmix64: every bit of the input changes half of the output's.
constexpr std::uint64_t mix(std::uint64_t value) noexcept {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

/// The same on every machine and in every version: clients keep their endpoint when a node is replaced.
constexpr std::uint64_t hash_bytes(std::span<const std::uint8_t> bytes) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const std::uint8_t byte : bytes) hash = (hash ^ byte) * 0x100000001b3ULL;
  return mix(hash);
}

/// Of a client's address, without its port.
constexpr std::uint64_t hash_client(const net::SocketAddress& client) noexcept { return hash_bytes(client.bytes); }

constexpr std::uint64_t hash_endpoint(const net::SocketAddress& endpoint) noexcept {
  return mix(hash_bytes(endpoint.bytes) + endpoint.port);
}

/// Weighted rendezvous (Thaler and Ravishankar; Schindelhauer and Schomaker): the endpoint with the greatest score has the client. A score
/// depends on nothing but its own endpoint, so only the clients of one that comes or goes move.
inline double rendezvous_score(std::uint64_t client, std::uint64_t endpoint, std::uint32_t weight) noexcept {
  // In (0, 1): 53 bits and a half.
  const double share = (static_cast<double>(mix(client ^ endpoint) >> 11) + 0.5) * 0x1p-53;
  return -static_cast<double>(weight) / std::log(share);
}

}  // namespace holdfast::proxy
