#include "local_routes.h"

#include <net/if.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "netlink.h"

namespace holdfast::net {
namespace {

std::size_t bytes_of(Family family) noexcept { return family == Family::ipv6 ? 16 : 4; }
int family_of(const Prefix& prefix) noexcept { return prefix.network.family == Family::ipv6 ? AF_INET6 : AF_INET; }

using Request = RouteRequest<rtmsg>;

Request request_for(std::uint16_t type, std::uint16_t flags, int family) noexcept {
  Request request(type, flags);
  request.body.rtm_family = static_cast<unsigned char>(family);
  request.body.rtm_table = RT_TABLE_LOCAL;
  request.body.rtm_protocol = kLocalRouteProtocol;
  request.body.rtm_type = RTN_LOCAL;
  request.body.rtm_scope = RT_SCOPE_HOST;
  return request;
}

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
  each_attribute<rtmsg>(header, [&](unsigned type, std::string_view value) {
    if (type == RTA_DST && value.size() == bytes_of(prefix.network.family)) std::memcpy(prefix.network.bytes.data(), value.data(), value.size());
  });
  return prefix;
}

int dump(RouteSocket& socket, int family, std::vector<Prefix>& found) {
  Request request = request_for(RTM_GETROUTE, NLM_F_DUMP, family);
  request.body.rtm_type = RTN_UNSPEC;
  request.body.rtm_scope = 0;
  return socket.talk(request, [&](const nlmsghdr& header) {
    if (const auto prefix = ours(header)) found.push_back(*prefix);
  });
}

int change(RouteSocket& socket, std::uint16_t type, std::uint16_t flags, const Prefix& prefix) {
  Request request = request_for(type, static_cast<std::uint16_t>(NLM_F_ACK | flags), family_of(prefix));
  request.body.rtm_dst_len = prefix.length;
  const unsigned loopback = ::if_nametoindex("lo");
  request.add(RTA_DST, prefix.network.bytes.data(), bytes_of(prefix.network.family));
  request.add(RTA_OIF, &loopback, sizeof loopback);
  return socket.talk(request, [](const nlmsghdr&) {});
}

std::string text(const Prefix& prefix) { return prefix.network.host() + "/" + std::to_string(prefix.length); }

}  // namespace

int set_local_routes(const std::vector<Prefix>& wanted, std::string& failed) {
  RouteSocket socket;
  if (!socket) return failed = "socket(AF_NETLINK)", -errno;
  std::vector<Prefix> present;
  for (const int family : {AF_INET, AF_INET6}) {
    const int error = dump(socket, family, present);
    // A machine without IPv6 has no such routes.
    if (error != 0 && !(family == AF_INET6 && (error == -EOPNOTSUPP || error == -EAFNOSUPPORT))) return failed = "list routes", error;
  }
  const auto has = [](const std::vector<Prefix>& list, const Prefix& one) { return std::find(list.begin(), list.end(), one) != list.end(); };
  for (const Prefix& prefix : wanted) {
    if (has(present, prefix)) continue;
    const int error = change(socket, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE, prefix);
    if (error != 0) return failed = "add the route " + text(prefix), error;
  }
  for (const Prefix& prefix : present) {
    if (has(wanted, prefix)) continue;
    const int error = change(socket, RTM_DELROUTE, 0, prefix);
    if (error != 0 && error != -ESRCH) return failed = "remove the route " + text(prefix), error;
  }
  return 0;
}

}  // namespace holdfast::net
