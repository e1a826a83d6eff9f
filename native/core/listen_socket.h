#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <variant>

#include "socket_address.h"
#include "unique_fd.h"

namespace holdfast::proxy {

enum class BindFailure : std::uint8_t { address_in_use, permission_denied, address_unavailable, fd_limit, other };

struct ListenError {
  BindFailure reason;
  std::string detail;
};

/// A socket that listens, shared by the control side and all workers; closed when the last of them lets go.
class ListenSocket {
 public:
  /// Non-blocking; accepted sockets inherit TCP_NODELAY and SO_KEEPALIVE.
  static std::variant<std::shared_ptr<ListenSocket>, ListenError> open(const net::SocketAddress& address);

  ListenSocket(net::UniqueFd fd, const net::SocketAddress& bound) : fd_(std::move(fd)), bound_(bound) {}

  int fd() const noexcept { return fd_.get(); }
  /// With the port that the kernel chose when it was asked to.
  const net::SocketAddress& bound() const noexcept { return bound_; }

 private:
  net::UniqueFd fd_;
  net::SocketAddress bound_;
};

/// How many sockets may listen: two thirds of the limit of open files less a reserve for everything else that the process opens.
std::size_t listener_budget() noexcept;

}  // namespace holdfast::proxy
