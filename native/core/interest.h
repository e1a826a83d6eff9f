#pragma once

#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>

#include "socket_address.h"

namespace holdfast::proxy {

/// Both sides of a connection are registered once, edge-triggered; EPOLLOUT is added where it is waited for.
constexpr std::uint32_t kInterest = EPOLLIN | EPOLLRDHUP | EPOLLPRI | EPOLLET;

/// The socket's pending error, which this clears.
inline int socket_error(int fd) noexcept {
  int error = 0;
  socklen_t size = sizeof error;
  return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

inline net::SocketAddress local_address(int fd) noexcept {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &size) != 0) return {};
  return net::SocketAddress::from(storage);
}

}  // namespace holdfast::proxy
