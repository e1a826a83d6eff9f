#pragma once

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "unique_fd.h"

namespace holdfast::net {

/// A request of rtnetlink(7) and the room for a few attributes. What was built is not copied: it is padded as it lies.
template <typename Body>
struct RouteRequest {
  nlmsghdr header{};
  Body body{};
  std::array<char, 128> attributes{};

  RouteRequest(std::uint16_t type, std::uint16_t flags) noexcept {
    header.nlmsg_len = NLMSG_LENGTH(sizeof body);
    header.nlmsg_type = type;
    header.nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | flags);
  }

  void add(std::uint16_t type, const void* data, std::size_t size) noexcept {
    const auto at = NLMSG_ALIGN(header.nlmsg_len);
    rtattr attribute{static_cast<unsigned short>(RTA_LENGTH(size)), type};
    char* to = reinterpret_cast<char*>(this) + at;
    std::memcpy(to, &attribute, sizeof attribute);
    std::memcpy(to + RTA_LENGTH(0), data, size);
    header.nlmsg_len = static_cast<std::uint32_t>(at + RTA_SPACE(size));
  }
};

/// `take(type, value)` of each attribute that is whole.
template <typename Body, typename Take>
void each_attribute(const nlmsghdr& header, Take take) {
  if (header.nlmsg_len < NLMSG_LENGTH(sizeof(Body))) return;
  std::size_t left = header.nlmsg_len - NLMSG_LENGTH(sizeof(Body));
  const auto* at = reinterpret_cast<const char*>(NLMSG_DATA(&header)) + NLMSG_ALIGN(sizeof(Body));
  while (left >= sizeof(rtattr)) {
    rtattr attribute;
    std::memcpy(&attribute, at, sizeof attribute);
    if (attribute.rta_len < sizeof attribute || attribute.rta_len > left) return;
    take(attribute.rta_type, std::string_view(at + RTA_LENGTH(0), attribute.rta_len - RTA_LENGTH(0)));
    const std::size_t step = RTA_ALIGN(attribute.rta_len) < left ? RTA_ALIGN(attribute.rta_len) : left;
    at += step;
    left -= step;
  }
}

/// One question after the other. Filters of a dump are the kernel's where it knows how.
class RouteSocket {
 public:
  RouteSocket() : fd_(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE)), buffer_(kReceived) {
    const int on = 1;
    if (fd_) ::setsockopt(fd_.get(), SOL_NETLINK, NETLINK_GET_STRICT_CHK, &on, sizeof on);
  }
  explicit operator bool() const noexcept { return static_cast<bool>(fd_); }

  /// 0 or the negative errno, once the kernel has answered to the end.
  template <typename Body, typename Take>
  int talk(RouteRequest<Body>& request, Take take) {
    request.header.nlmsg_seq = ++sequence_;
    if (::send(fd_.get(), &request, request.header.nlmsg_len, 0) < 0) return -errno;
    for (;;) {
      ssize_t size;
      do size = ::recv(fd_.get(), buffer_.data(), buffer_.size(), 0);
      while (size < 0 && errno == EINTR);
      if (size <= 0) return size < 0 ? -errno : -EIO;
      const std::optional<int> end = read(static_cast<std::size_t>(size), take);
      if (end) return *end;
    }
  }

 private:
  /// The kernel sends a dump in messages of up to 32 KiB.
  static constexpr std::size_t kReceived = 32 * 1024;

  template <typename Take>
  std::optional<int> read(std::size_t size, Take take) {
    for (std::size_t at = 0; at + sizeof(nlmsghdr) <= size;) {
      const auto& header = *reinterpret_cast<const nlmsghdr*>(buffer_.data() + at);
      if (header.nlmsg_len < sizeof header || header.nlmsg_len > size - at) return -EPROTO;
      if (header.nlmsg_seq == sequence_) {
        if (header.nlmsg_type == NLMSG_DONE) return 0;
        if (header.nlmsg_type == NLMSG_ERROR) {
          if (header.nlmsg_len < NLMSG_LENGTH(sizeof(nlmsgerr))) return -EPROTO;
          nlmsgerr error;
          std::memcpy(&error, NLMSG_DATA(&header), sizeof error);
          return error.error;
        }
        take(header);
      }
      at += NLMSG_ALIGN(header.nlmsg_len);
    }
    return std::nullopt;
  }

  UniqueFd fd_;
  std::uint32_t sequence_ = 0;
  std::vector<char> buffer_;
};

}  // namespace holdfast::net
