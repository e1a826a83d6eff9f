#include "listen_socket.h"

#include <netinet/tcp.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace holdfast::proxy {
namespace {

/// The kernel lowers it to net.core.somaxconn (4096 by default).
constexpr int kBacklog = 4096;
constexpr rlim_t kReserve = 1024;
/// Stands for "unlimited": fs.nr_open's default.
constexpr rlim_t kMostFiles = 1 << 20;

ListenError error_of(const char* call, int error) {
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

bool enable(int fd, int level, int option) noexcept {
  const int on = 1;
  return ::setsockopt(fd, level, option, &on, sizeof on) == 0;
}

}  // namespace

std::variant<std::shared_ptr<ListenSocket>, ListenError> ListenSocket::open(const net::SocketAddress& address) {
  const net::RawAddress raw(address);
  net::UniqueFd fd(::socket(raw.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return error_of("socket", errno);
  const bool prepared = enable(fd.get(), SOL_SOCKET, SO_REUSEADDR) && enable(fd.get(), SOL_SOCKET, SO_KEEPALIVE) &&
                        enable(fd.get(), IPPROTO_TCP, TCP_NODELAY) &&
                        (raw.family() != AF_INET6 || enable(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY));
  if (!prepared) return error_of("setsockopt", errno);
  if (::bind(fd.get(), raw.data(), raw.size()) != 0) return error_of("bind", errno);
  if (::listen(fd.get(), kBacklog) != 0) return error_of("listen", errno);
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  if (::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&bound), &size) != 0) return error_of("getsockname", errno);
  return std::make_shared<ListenSocket>(std::move(fd), net::SocketAddress::from(bound));
}

std::size_t listener_budget() noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  const rlim_t files = std::min(limit.rlim_cur, kMostFiles);
  return (files - std::min(kReserve, files / 4)) * 2 / 3;
}

}  // namespace holdfast::proxy
