#include "fd_passing.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

namespace holdfast {
namespace {

using Clock = std::chrono::steady_clock;

/// Before the text: its length and the number of descriptors, which come with the first byte.
struct Header {
  std::uint32_t bytes;
  std::uint32_t fds;
};

constexpr std::uint32_t kMostText = 1 << 20;

/// 0, or -ETIMEDOUT or another negative errno.
int await(int fd, short events, Clock::time_point deadline) noexcept {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd waiting{fd, events, 0};
    const int ready = ::poll(&waiting, 1, left.count() > 0 ? static_cast<int>(left.count()) : 0);
    if (ready > 0) return 0;
    if (ready == 0) return -ETIMEDOUT;
    if (errno != EINTR) return -errno;
  }
}

/// Writes all of it.
int send_all(int channel, const char* data, std::size_t size, Clock::time_point deadline) noexcept {
  while (size > 0) {
    const ssize_t sent = ::send(channel, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EAGAIN) {
      if (const int error = await(channel, POLLOUT, deadline)) return error;
    } else if (sent < 0) {
      if (errno != EINTR) return -errno;
    } else {
      data += sent;
      size -= static_cast<std::size_t>(sent);
    }
  }
  return 0;
}

int receive_all(int channel, char* data, std::size_t size, Clock::time_point deadline) noexcept {
  while (size > 0) {
    const ssize_t got = ::recv(channel, data, size, MSG_DONTWAIT);
    if (got == 0) return -EPIPE;
    if (got < 0 && errno == EAGAIN) {
      if (const int error = await(channel, POLLIN, deadline)) return error;
    } else if (got < 0) {
      if (errno != EINTR) return -errno;
    } else {
      data += got;
      size -= static_cast<std::size_t>(got);
    }
  }
  return 0;
}

using Control = std::array<char, CMSG_SPACE(kMostPassed * sizeof(int))>;

void take_descriptors(msghdr& message, std::vector<net::UniqueFd>& fds) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof fd, sizeof fd);
      fds.emplace_back(fd);
    }
  }
}

/// The first bytes of a parcel, at least one, and its descriptors. @return how many bytes, or the negative errno
ssize_t receive_first(int channel, Header& header, std::vector<net::UniqueFd>& fds, Clock::time_point deadline) {
  for (;;) {
    alignas(cmsghdr) Control control;
    iovec room{&header, sizeof header};
    msghdr message{};
    message.msg_iov = &room;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t got = ::recvmsg(channel, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got > 0) {
      take_descriptors(message, fds);
      return got;
    }
    if (got == 0) return -EPIPE;
    if (errno == EAGAIN) {
      if (const int error = await(channel, POLLIN, deadline)) return error;
    } else if (errno != EINTR) {
      return -errno;
    }
  }
}

}  // namespace

int open_channel(Channel& channel) noexcept {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return -errno;
  channel.ours.reset(ends[0]);
  channel.theirs.reset(ends[1]);
  return 0;
}

int send_parcel(int channel, const std::string& text, std::span<const int> fds, std::chrono::milliseconds patience) noexcept {
  if (text.size() > kMostText || fds.size() > kMostPassed) return -EMSGSIZE;
  const auto deadline = Clock::now() + patience;
  Header header{static_cast<std::uint32_t>(text.size()), static_cast<std::uint32_t>(fds.size())};
  alignas(cmsghdr) Control control{};
  iovec first{&header, sizeof header};
  msghdr message{};
  message.msg_iov = &first;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(part), fds.data(), fds.size_bytes());
  }
  ssize_t sent = -1;
  while ((sent = ::sendmsg(channel, &message, MSG_NOSIGNAL | MSG_DONTWAIT)) < 0) {
    if (errno != EAGAIN && errno != EINTR) return -errno;
    if (errno == EINTR) continue;
    if (const int error = await(channel, POLLOUT, deadline)) return error;
  }
  const auto done = static_cast<std::size_t>(sent);
  if (const int error = send_all(channel, reinterpret_cast<const char*>(&header) + done, sizeof header - done, deadline)) return error;
  return send_all(channel, text.data(), text.size(), deadline);
}

int receive_parcel(int channel, Parcel& parcel, std::chrono::milliseconds patience) {
  const auto deadline = Clock::now() + patience;
  parcel = {};
  Header header{};
  const ssize_t got = receive_first(channel, header, parcel.fds, deadline);
  if (got < 0) return static_cast<int>(got);
  const auto done = static_cast<std::size_t>(got);
  if (const int error = receive_all(channel, reinterpret_cast<char*>(&header) + done, sizeof header - done, deadline)) return error;
  if (header.bytes > kMostText || header.fds > kMostPassed) return -EBADMSG;
  parcel.text.resize(header.bytes);
  if (const int error = receive_all(channel, parcel.text.data(), parcel.text.size(), deadline)) return error;
  // The kernel leaves out what the limit of open files has no room for (MSG_CTRUNC).
  return parcel.fds.size() == header.fds ? 0 : -EMFILE;
}

}  // namespace holdfast
