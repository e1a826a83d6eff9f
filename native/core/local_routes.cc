#include "local_routes.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <span>

#include "unique_fd.h"

namespace holdfast::net {
namespace {

/// The kernel sends a dump in messages of up to 32 KiB.
constexpr std::size_t kReceived = 32 * 1024;

std::size_t bytes_of(Family family) noexcept { return family == Family::ipv6 ? 16 : 4; }
int family_of(const Prefix& prefix) noexcept { return prefix.network.family == Family::ipv6 ? AF_INET6 : AF_INET; }

/// A request and the room for two attributes.
struct Request {
  nlmsghdr header{};
  rtmsg route{};
  std::array<char, 64> attributes{};

  Request(std::uint16_t type, std::uint16_t flags, int family) noexcept {
    header.nlmsg_len = NLMSG_LENGTH(sizeof route);
    header.nlmsg_type = type;
    header.nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | flags);
    route.rtm_family = static_cast<unsigned char>(family);
    route.rtm_table = RT_TABLE_LOCAL;
    route.rtm_protocol = kLocalRouteProtocol;
    route.rtm_type = RTN_LOCAL;
    route.rtm_scope = RT_SCOPE_HOST;
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

/// The route of a message if it is one of ours.
std::optional<Prefix> ours(const nlmsghdr& header) noexcept {
  if (header.nlmsg_type != RTM_NEWROUTE || header.nlmsg_len < NLMSG_LENGTH(sizeof(rtmsg))) return std::nullopt;
  rtmsg route;
  std::memcpy(&route, NLMSG_DATA(&header), sizeof route);
  // An older kernel gives the whole table, whatever was asked for.
  if (route.rtm_protocol != kLocalRouteProtocol || route.rtm_type != RTN_LOCAL || route.rtm_table != RT_TABLE_LOCAL) return std::nullopt;
  Prefix prefix;
  prefix.network.family = route.rtm_family == AF_INET6 ? Family::ipv6 : Family::ipv4;
  prefix.length = route.rtm_dst_len;
  std::size_t left = header.nlmsg_len - NLMSG_LENGTH(sizeof route);
  const auto* at = reinterpret_cast<const char*>(NLMSG_DATA(&header)) + NLMSG_ALIGN(sizeof route);
  while (left >= sizeof(rtattr)) {
    rtattr attribute;
    std::memcpy(&attribute, at, sizeof attribute);
    if (attribute.rta_len < sizeof attribute || attribute.rta_len > left) break;
    const std::size_t size = attribute.rta_len - RTA_LENGTH(0);
    if (attribute.rta_type == RTA_DST && size == bytes_of(prefix.network.family)) std::memcpy(prefix.network.bytes.data(), at + RTA_LENGTH(0), size);
    const std::size_t step = std::min<std::size_t>(RTA_ALIGN(attribute.rta_len), left);
    at += step;
    left -= step;
  }
  return prefix;
}

class RouteSocket {
 public:
  RouteSocket() : fd_(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE)), buffer_(kReceived) {
    const int on = 1;
    if (fd_) ::setsockopt(fd_.get(), SOL_NETLINK, NETLINK_GET_STRICT_CHK, &on, sizeof on);
  }
  explicit operator bool() const noexcept { return static_cast<bool>(fd_); }

  int dump(int family, std::vector<Prefix>& found) {
    Request request(RTM_GETROUTE, NLM_F_DUMP, family);
    request.route.rtm_type = RTN_UNSPEC;
    request.route.rtm_scope = 0;
    return talk(request, [&](const nlmsghdr& header) {
      if (const auto prefix = ours(header)) found.push_back(*prefix);
    });
  }

  int change(std::uint16_t type, std::uint16_t flags, const Prefix& prefix) {
    Request request(type, static_cast<std::uint16_t>(NLM_F_ACK | flags), family_of(prefix));
    request.route.rtm_dst_len = prefix.length;
    const unsigned loopback = ::if_nametoindex("lo");
    request.add(RTA_DST, prefix.network.bytes.data(), bytes_of(prefix.network.family));
    request.add(RTA_OIF, &loopback, sizeof loopback);
    return talk(request, [](const nlmsghdr&) {});
  }

 private:
  /// 0 or the negative errno, once the kernel has answered to the end.
  template <typename Take>
  int talk(Request& request, Take take) {
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

std::string text(const Prefix& prefix) { return prefix.network.host() + "/" + std::to_string(prefix.length); }

}  // namespace

int set_local_routes(const std::vector<Prefix>& wanted, std::string& failed) {
  RouteSocket socket;
  if (!socket) return failed = "socket(AF_NETLINK)", -errno;
  std::vector<Prefix> present;
  for (const int family : {AF_INET, AF_INET6}) {
    const int error = socket.dump(family, present);
    // A machine without IPv6 has no such routes.
    if (error != 0 && !(family == AF_INET6 && (error == -EOPNOTSUPP || error == -EAFNOSUPPORT))) return failed = "list routes", error;
  }
  const auto has = [](const std::vector<Prefix>& list, const Prefix& one) { return std::find(list.begin(), list.end(), one) != list.end(); };
  for (const Prefix& prefix : wanted) {
    if (has(present, prefix)) continue;
    const int error = socket.change(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE, prefix);
    if (error != 0) return failed = "add the route " + text(prefix), error;
  }
  for (const Prefix& prefix : present) {
    if (has(wanted, prefix)) continue;
    const int error = socket.change(RTM_DELROUTE, 0, prefix);
    if (error != 0 && error != -ESRCH) return failed = "remove the route " + text(prefix), error;
  }
  return 0;
}

}  // namespace holdfast::net
