#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <cstring>

#include "socket_address.h"

namespace holdfast::proxy {

/// A client's address as the kernel gives and takes it, with the scope of a link-local one.
class UdpClient {
 public:
  UdpClient() noexcept = default;

  /// Where recvmmsg(2) puts it.
  void* room() noexcept { return &raw_; }
  static constexpr socklen_t kRoom = sizeof(sockaddr_in6);

  const void* data() const noexcept { return &raw_; }
  socklen_t size() const noexcept { return raw_.sin6_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in); }

  bool operator==(const UdpClient& other) const noexcept {
    // Of an IPv4 address the rest is padding: family, port and address are its first 8 bytes.
    return std::memcmp(&raw_, &other.raw_, raw_.sin6_family == AF_INET6 ? sizeof raw_ : 8) == 0;
  }

  /// Not to be foreseen by who does not know the seed: a client chooses its ports, and must not choose its bucket.
  std::uint64_t hash(std::uint64_t seed) const noexcept {
    std::uint64_t words[3]{};
    std::memcpy(words, &raw_, raw_.sin6_family == AF_INET6 ? 24 : 8);
    return mix(mix(words[0] ^ seed, words[1] ^ kOdd) ^ words[2], seed | 1);
  }

  net::SocketAddress address() const noexcept {
    sockaddr_storage storage{};
    std::memcpy(&storage, &raw_, sizeof raw_);
    return net::SocketAddress::from(storage);
  }

 private:
  static constexpr std::uint64_t kOdd = 0x9e37'79b9'7f4a'7c15;

  static std::uint64_t mix(std::uint64_t a, std::uint64_t b) noexcept {
    const auto product = static_cast<unsigned __int128>(a) * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  }

  sockaddr_in6 raw_{};
};

}  // namespace holdfast::proxy
