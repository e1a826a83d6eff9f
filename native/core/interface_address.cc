#include "interface_address.h"

#include <linux/if_addr.h>
#include <net/if.h>
#include <time.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "netlink.h"

namespace holdfast::net {
namespace {

constexpr std::uint32_t kForever = 0xffffffff;
/// Beyond this a lifetime is a mistake.
constexpr double kLongest = 3'600;

using Request = RouteRequest<ifaddrmsg>;

std::size_t bytes_of(Family family) noexcept { return family == Family::ipv6 ? 16 : 4; }
std::uint8_t family_of(Family family) noexcept { return family == Family::ipv6 ? AF_INET6 : AF_INET; }

double boot_time_ms() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

Request request_for(std::uint16_t type, std::uint16_t flags, unsigned index, const SocketAddress& address, std::uint8_t length) noexcept {
  Request request(type, static_cast<std::uint16_t>(NLM_F_ACK | flags));
  request.body.ifa_family = family_of(address.family);
  request.body.ifa_prefixlen = length;
  request.body.ifa_index = index;
  request.add(IFA_LOCAL, address.bytes.data(), bytes_of(address.family));
  request.add(IFA_ADDRESS, address.bytes.data(), bytes_of(address.family));
  return request;
}

bool read(const nlmsghdr& header, InterfaceAddress& found) {
  if (header.nlmsg_type != RTM_NEWADDR || header.nlmsg_len < NLMSG_LENGTH(sizeof(ifaddrmsg))) return false;
  ifaddrmsg message;
  std::memcpy(&message, NLMSG_DATA(&header), sizeof message);
  found.address.family = message.ifa_family == AF_INET6 ? Family::ipv6 : Family::ipv4;
  found.length = message.ifa_prefixlen;
  found.valid = kForever;
  std::array<char, IF_NAMESIZE> name{};
  if (::if_indextoname(message.ifa_index, name.data()) == nullptr) return false;
  found.interface = name.data();
  bool has_local = false;
  each_attribute<ifaddrmsg>(header, [&](unsigned type, std::string_view value) {
    // On a link to one peer IFA_ADDRESS is the peer's.
    const bool is_address = type == IFA_LOCAL || (type == IFA_ADDRESS && !has_local);
    if (is_address && value.size() == bytes_of(found.address.family)) std::memcpy(found.address.bytes.data(), value.data(), value.size());
    has_local |= type == IFA_LOCAL;
    if (type != IFA_CACHEINFO || value.size() < sizeof(ifa_cacheinfo)) return;
    ifa_cacheinfo cache;
    std::memcpy(&cache, value.data(), sizeof cache);
    found.valid = cache.ifa_valid;
  });
  return true;
}

}  // namespace

int list_addresses(Family family, std::vector<InterfaceAddress>& found) {
  RouteSocket socket;
  if (!socket) return -errno;
  Request request(RTM_GETADDR, NLM_F_DUMP);
  request.body.ifa_family = family_of(family);
  const int error = socket.talk(request, [&](const nlmsghdr& header) {
    InterfaceAddress one;
    if (read(header, one) && one.address.family == family) found.push_back(one);
  });
  // A machine without IPv6 has no such addresses.
  return family == Family::ipv6 && (error == -EOPNOTSUPP || error == -EAFNOSUPPORT) ? 0 : error;
}

int lease_address(const std::string& interface, const SocketAddress& address, double until) {
  const unsigned index = ::if_nametoindex(interface.c_str());
  if (index == 0) return -ENODEV;
  RouteSocket socket;
  if (!socket) return -errno;
  const auto length = static_cast<std::uint8_t>(bytes_of(address.family) * 8);
  Request request = request_for(RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE, index, address, length);
  if (address.family == Family::ipv6) {
    // Whoever had it before may still answer to the search for a double: it would not become usable. And no route to itself, which would
    // outlive it.
    const std::uint32_t flags = IFA_F_NODAD | IFA_F_NOPREFIXROUTE;
    request.add(IFA_FLAGS, &flags, sizeof flags);
  }
  const double left = (until - boot_time_ms()) / 1e3;
  if (!(left >= 1)) return 0;
  if (left > kLongest) return -EINVAL;
  ifa_cacheinfo cache{};
  cache.ifa_valid = static_cast<std::uint32_t>(left);
  // Nobody's own calls begin with it: of IPv6 the kernel would choose it as their source.
  cache.ifa_prefered = address.family == Family::ipv6 ? 0 : cache.ifa_valid;
  request.add(IFA_CACHEINFO, &cache, sizeof cache);
  const int error = socket.talk(request, [](const nlmsghdr&) {});
  return error != 0 ? error : static_cast<int>(cache.ifa_valid);
}

int remove_address(const InterfaceAddress& which) {
  const unsigned index = ::if_nametoindex(which.interface.c_str());
  if (index == 0) return 0;
  RouteSocket socket;
  if (!socket) return -errno;
  Request request = request_for(RTM_DELADDR, 0, index, which.address, which.length);
  const int error = socket.talk(request, [](const nlmsghdr&) {});
  return error == -EADDRNOTAVAIL ? 0 : error;
}

}  // namespace holdfast::net
