#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <compare>
#include <cstdint>
#include <string>

namespace holdfast::net {

enum class Family : std::uint8_t { ipv4 = 4, ipv6 = 6 };

/// An IP address and a port. An IPv4 address stands in the first four bytes, the rest is zero.
struct SocketAddress {
  Family family = Family::ipv4;
  std::uint16_t port = 0;
  std::array<std::uint8_t, 16> bytes{};

  auto operator<=>(const SocketAddress&) const = default;

  /// The address without the port, as inet_ntop(3) writes it.
  std::string host() const;

  static SocketAddress loopback(std::uint16_t port) noexcept;
  static SocketAddress from(const sockaddr_storage& storage) noexcept;
};

/// A SocketAddress in the kernel's form.
class RawAddress {
 public:
  explicit RawAddress(const SocketAddress& address) noexcept;
  const sockaddr* data() const noexcept { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t size() const noexcept { return size_; }
  int family() const noexcept { return storage_.ss_family; }

 private:
  sockaddr_storage storage_{};
  socklen_t size_ = 0;
};

}  // namespace holdfast::net
