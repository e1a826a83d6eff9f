#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <variant>

#include "socket_address.h"
#include "table.h"
#include "unique_fd.h"

namespace holdfast::proxy {

enum class BindFailure : std::uint8_t { address_in_use, permission_denied, address_unavailable, fd_limit, other };

struct ListenError {
  BindFailure reason;
  std::string detail;
};

/// What a failed call says.
ListenError listen_error(const char* call, int error);

/// A socket that listens, shared by the control side and all workers; closed when the last of them lets go.
class ListenSocket {
 public:
  /// Non-blocking; accepted sockets inherit TCP_NODELAY and SO_KEEPALIVE.
  static std::variant<std::shared_ptr<ListenSocket>, ListenError> open(const net::SocketAddress& address);

  /// One that another process opened with `open` or `open_udp`, and handed over. Null when it is none.
  static std::shared_ptr<ListenSocket> inherit(net::UniqueFd fd, Protocol protocol);

  ListenSocket(net::UniqueFd fd, const net::SocketAddress& bound, std::size_t owner = 0)
      : fd_(std::move(fd)), bound_(bound), owner_(owner) {}

  int fd() const noexcept { return fd_.get(); }
  /// With the port that the kernel chose when it was asked to.
  const net::SocketAddress& bound() const noexcept { return bound_; }
  /// UDP: the worker that reads it.
  std::size_t owner() const noexcept { return owner_; }
  /// Before any worker has it.
  void set_owner(std::size_t owner) noexcept { owner_ = owner; }

 private:
  net::UniqueFd fd_;
  net::SocketAddress bound_;
  std::size_t owner_;
};

}  // namespace holdfast::proxy
