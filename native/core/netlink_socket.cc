#include "netlink_socket.h"

#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>
#include <climits>

namespace holdfast::netlink {
namespace {

/// Room for the kernel's answers, and for batches until one is larger.
constexpr int kBuffer = 8 * 1024 * 1024;
/// What a datagram takes of the sending buffer beside its bytes is less.
constexpr std::size_t kOverhead = 64 * 1024;
/// The kernel sends a dump in datagrams of up to 32 KiB, larger only for larger readers.
constexpr std::size_t kReceived = 64 * 1024;

}  // namespace

int Socket::open() {
  fd_.reset(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER));
  if (!fd_) return -errno;
  sockaddr_nl any{};
  any.nl_family = AF_NETLINK;
  if (::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any) != 0) return -errno;
  return prepare();
}

int Socket::adopt(net::UniqueFd fd) {
  int protocol = -1;
  socklen_t size = sizeof protocol;
  sockaddr_nl own{};
  socklen_t length = sizeof own;
  const bool known = ::getsockopt(fd.get(), SOL_SOCKET, SO_PROTOCOL, &protocol, &size) == 0 &&
                     ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&own), &length) == 0;
  if (!known) return -errno;
  if (own.nl_family != AF_NETLINK || protocol != NETLINK_NETFILTER) return -EPROTOTYPE;
  fd_ = std::move(fd);
  return prepare();
}

int Socket::prepare() {
  sockaddr_nl own{};
  socklen_t length = sizeof own;
  if (::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&own), &length) != 0) return -errno;
  port_ = own.nl_pid;
  const int on = 1;
  const int size = kBuffer;
  // The kernel answers at once; this is for the case that it does not.
  const timeval patience{5, 0};
  ::setsockopt(fd_.get(), SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof on);
  ::setsockopt(fd_.get(), SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof on);
  ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size);
  ::setsockopt(fd_.get(), SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size);
  ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  buffer_.resize(kReceived);
  return 0;
}

int Socket::send(const Bytes& bytes) {
  sockaddr_nl kernel{};
  kernel.nl_family = AF_NETLINK;
  const auto try_once = [&] {
    ssize_t sent;
    do sent = ::sendto(fd_.get(), bytes.data(), bytes.size(), 0, reinterpret_cast<const sockaddr*>(&kernel), sizeof kernel);
    while (sent < 0 && errno == EINTR);
    return sent < 0 ? -errno : 0;
  };
  const int error = try_once();
  // The kernel doubles the number, and takes at most half of the greatest.
  if (error != -EMSGSIZE || bytes.size() > INT_MAX / 2 - kOverhead) return error;
  const int size = static_cast<int>(bytes.size() + kOverhead);
  if (::setsockopt(fd_.get(), SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size) != 0) return error;
  const int again = try_once();
  const int usual = kBuffer;
  ::setsockopt(fd_.get(), SOL_SOCKET, SO_SNDBUFFORCE, &usual, sizeof usual);
  return again;
}

int Socket::receive(std::span<const std::uint8_t>& datagram, int flags) {
  for (;;) {
    const ssize_t size = ::recv(fd_.get(), buffer_.data(), buffer_.size(), flags | MSG_TRUNC);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return -errno;
    if (size == 0) return -EIO;
    if (static_cast<std::size_t>(size) > buffer_.size()) return -EMSGSIZE;
    datagram = std::span(buffer_).first(static_cast<std::size_t>(size));
    return 0;
  }
}

int Socket::join(std::uint32_t group) noexcept {
  return ::setsockopt(fd_.get(), SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof group) == 0 ? 0 : -errno;
}

int Socket::leave(std::uint32_t group) noexcept {
  return ::setsockopt(fd_.get(), SOL_NETLINK, NETLINK_DROP_MEMBERSHIP, &group, sizeof group) == 0 ? 0 : -errno;
}

}  // namespace holdfast::netlink
