#pragma once

#include <cstdint>
#include <span>

#include "netlink_message.h"
#include "unique_fd.h"

namespace holdfast::netlink {

/// One socket of NETLINK_NETFILTER (netlink(7)) with buffers of 8 MiB. One thread at a time.
class Socket {
 public:
  /// 0 or the negative errno. Once.
  int open();
  /// Instead of `open`: one that another process has opened, and passed. -EPROTOTYPE when it is none of netlink's.
  int adopt(net::UniqueFd fd);

  /// 0 or the negative errno. The kernel works on requests within the call. -EMSGSIZE: more than any buffer takes.
  int send(const Bytes& bytes);

  /// 0 and the next datagram, valid until the next call; or the negative errno: -EAGAIN when there is none now (`MSG_DONTWAIT`) or within 5 s,
  /// -ENOBUFS once when some were lost.
  int receive(std::span<const std::uint8_t>& datagram, int flags);

  /// Begins or ends to hear a multicast group (linux/netfilter/nfnetlink.h). 0 or the negative errno.
  int join(std::uint32_t group) noexcept;
  int leave(std::uint32_t group) noexcept;

  /// The number by which the kernel knows this socket; whoever changes something has it in the events.
  std::uint32_t port() const noexcept { return port_; }
  int fd() const noexcept { return fd_.get(); }

 private:
  int prepare();

  net::UniqueFd fd_;
  std::uint32_t port_ = 0;
  Bytes buffer_;
};

}  // namespace holdfast::netlink
