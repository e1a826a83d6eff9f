#include "listen_socket.h"

#include <netinet/tcp.h>

#include <cerrno>
#include <optional>
#include <system_error>

namespace holdfast::proxy {
namespace {

/// The kernel lowers it to net.core.somaxconn (4096 by default).
constexpr int kBacklog = 4096;

bool enable(int fd, int level, int option) noexcept {
  const int on = 1;
  return ::setsockopt(fd, level, option, &on, sizeof on) == 0;
}

/// Of the level SOL_SOCKET; -1 when it has none.
int option(int fd, int name) noexcept {
  int value = -1;
  socklen_t size = sizeof value;
  return ::getsockopt(fd, SOL_SOCKET, name, &value, &size) == 0 ? value : -1;
}

std::optional<net::SocketAddress> bound_to(int fd) noexcept {
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &size) != 0) return std::nullopt;
  return net::SocketAddress::from(bound);
}

}  // namespace

ListenError listen_error(const char* call, int error) {
  const auto reason = [error] {
    switch (error) {
      case EADDRINUSE:
        return BindFailure::address_in_use;
      case EACCES:
      case EPERM:
        return BindFailure::permission_denied;
      case EADDRNOTAVAIL:
        return BindFailure::address_unavailable;
      case EMFILE:
      case ENFILE:
        return BindFailure::fd_limit;
      default:
        return BindFailure::other;
    }
  }();
  return {reason, std::string(call) + ": " + std::generic_category().message(error)};
}

std::variant<std::shared_ptr<ListenSocket>, ListenError> ListenSocket::open(const net::SocketAddress& address) {
  const net::RawAddress raw(address);
  net::UniqueFd fd(::socket(raw.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return listen_error("socket", errno);
  const bool prepared = enable(fd.get(), SOL_SOCKET, SO_REUSEADDR) && enable(fd.get(), SOL_SOCKET, SO_KEEPALIVE) &&
                        enable(fd.get(), IPPROTO_TCP, TCP_NODELAY) &&
                        (raw.family() != AF_INET6 || enable(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY));
  if (!prepared) return listen_error("setsockopt", errno);
  if (::bind(fd.get(), raw.data(), raw.size()) != 0) return listen_error("bind", errno);
  if (::listen(fd.get(), kBacklog) != 0) return listen_error("listen", errno);
  const auto bound = bound_to(fd.get());
  if (!bound) return listen_error("getsockname", errno);
  return std::make_shared<ListenSocket>(std::move(fd), *bound);
}

std::shared_ptr<ListenSocket> ListenSocket::inherit(net::UniqueFd fd, Protocol protocol) {
  const bool tcp = protocol == Protocol::tcp;
  if (option(fd.get(), SO_TYPE) != (tcp ? SOCK_STREAM : SOCK_DGRAM)) return nullptr;
  if (option(fd.get(), SO_PROTOCOL) != (tcp ? IPPROTO_TCP : IPPROTO_UDP) || (tcp && option(fd.get(), SO_ACCEPTCONN) != 1)) return nullptr;
  const auto bound = bound_to(fd.get());
  return bound ? std::make_shared<ListenSocket>(std::move(fd), *bound) : nullptr;
}

}  // namespace holdfast::proxy
