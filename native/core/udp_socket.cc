#include "udp_socket.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>

namespace holdfast::proxy {
namespace {

/// A worker that is busy elsewhere for 10 ms still loses none of 400,000 datagrams a second (768 bytes of the buffer each).
/// The kernel lowers it to net.core.rmem_max unless the process may exceed that.
constexpr int kListenBuffer = 4 << 20;
/// Per flow; 1,300 small datagrams or 15 of the largest. Nothing is used before datagrams wait.
constexpr int kFlowBuffer = 1 << 20;
/// How often a free port is looked for when the kernel's choice was taken meanwhile.
constexpr int kPortTries = 16;

void set(int fd, int level, int option, int value) noexcept { ::setsockopt(fd, level, option, &value, sizeof value); }

void raise(int fd, int forced, int option, int value) noexcept {
  if (::setsockopt(fd, SOL_SOCKET, forced, &value, sizeof value) != 0) set(fd, SOL_SOCKET, option, value);
}

std::variant<net::UniqueFd, ListenError> bind_udp(const net::SocketAddress& address) {
  const net::RawAddress raw(address);
  net::UniqueFd fd(::socket(raw.family(), SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return listen_error("socket", errno);
  if (raw.family() == AF_INET6) set(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, 1);
  raise(fd.get(), SO_RCVBUFFORCE, SO_RCVBUF, kListenBuffer);
  raise(fd.get(), SO_SNDBUFFORCE, SO_SNDBUF, kListenBuffer);
  if (::bind(fd.get(), raw.data(), raw.size()) != 0) return listen_error("bind", errno);
  return fd;
}

std::uint16_t port_of(int fd) noexcept {
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  return ::getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &size) == 0 ? net::SocketAddress::from(bound).port : 0;
}

}  // namespace

std::variant<std::shared_ptr<ListenSocket>, ListenError> open_udp(const net::SocketAddress& address, std::size_t owner) {
  net::SocketAddress wanted = address;
  for (int left = kPortTries;; --left) {
    if (address.port == 0) {
      // Only a port that was asked for by number outlives accept_clients(): the kernel takes others back.
      auto probe = bind_udp(address);
      if (auto* error = std::get_if<ListenError>(&probe)) return std::move(*error);
      wanted.port = port_of(std::get<net::UniqueFd>(probe).get());
    }
    auto bound = bind_udp(wanted);
    if (auto* fd = std::get_if<net::UniqueFd>(&bound)) return std::make_shared<ListenSocket>(std::move(*fd), wanted, owner);
    auto& error = std::get<ListenError>(bound);
    if (address.port != 0 || left == 0 || error.reason != BindFailure::address_in_use) return std::move(error);
  }
}

void refuse_clients(int fd, const net::SocketAddress& bound) noexcept {
  const net::RawAddress self(bound);
  ::connect(fd, self.data(), self.size());
}

void accept_clients(int fd) noexcept {
  sockaddr none{};
  none.sa_family = AF_UNSPEC;
  ::connect(fd, &none, sizeof none);
}

net::UniqueFd connect_udp(const net::SocketAddress& endpoint) noexcept {
  const net::RawAddress raw(endpoint);
  net::UniqueFd fd(::socket(raw.family(), SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return fd;
  // Unreachable hosts are reported too, not closed ports alone (ip(7)).
  const bool v6 = raw.family() == AF_INET6;
  set(fd.get(), v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_RECVERR : IP_RECVERR, 1);
  raise(fd.get(), SO_RCVBUFFORCE, SO_RCVBUF, kFlowBuffer);
  if (::connect(fd.get(), raw.data(), raw.size()) != 0) {
    const int error = errno;
    fd.reset();
    errno = error;
  }
  return fd;
}

int take_error(int fd) noexcept {
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  char discarded;
  iovec room{&discarded, 1};
  msghdr message{};
  message.msg_iov = &room;
  message.msg_iovlen = 1;
  while (::recvmsg(fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT) >= 0) {
  }
  return error;
}

}  // namespace holdfast::proxy
