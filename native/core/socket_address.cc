#include "socket_address.h"

#include <arpa/inet.h>

#include <cstring>

namespace holdfast::net {

std::string SocketAddress::host() const {
  char text[INET6_ADDRSTRLEN] = "";
  ::inet_ntop(family == Family::ipv4 ? AF_INET : AF_INET6, bytes.data(), text, sizeof text);
  return text;
}

SocketAddress SocketAddress::loopback(std::uint16_t port) noexcept {
  return {Family::ipv4, port, {127, 0, 0, 1}};
}

SocketAddress SocketAddress::from(const sockaddr_storage& storage) noexcept {
  SocketAddress address;
  if (storage.ss_family == AF_INET6) {
    sockaddr_in6 in6;
    std::memcpy(&in6, &storage, sizeof in6);
    address.family = Family::ipv6;
    address.port = ntohs(in6.sin6_port);
    std::memcpy(address.bytes.data(), &in6.sin6_addr, 16);
  } else {
    sockaddr_in in;
    std::memcpy(&in, &storage, sizeof in);
    address.port = ntohs(in.sin_port);
    std::memcpy(address.bytes.data(), &in.sin_addr, 4);
  }
  return address;
}

RawAddress::RawAddress(const SocketAddress& address) noexcept {
  if (address.family == Family::ipv6) {
    sockaddr_in6 in6{};
    in6.sin6_family = AF_INET6;
    in6.sin6_port = htons(address.port);
    std::memcpy(&in6.sin6_addr, address.bytes.data(), 16);
    std::memcpy(&storage_, &in6, size_ = sizeof in6);
  } else {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_port = htons(address.port);
    std::memcpy(&in.sin_addr, address.bytes.data(), 4);
    std::memcpy(&storage_, &in, size_ = sizeof in);
  }
}

}  // namespace holdfast::net
