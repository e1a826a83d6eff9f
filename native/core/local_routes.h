#pragma once

#include <string>
#include <vector>

#include "socket_address.h"

namespace holdfast::net {

struct Prefix {
  SocketAddress network;
  std::uint8_t length = 0;

  auto operator<=>(const Prefix&) const = default;
};

/// Our mark on a route (rtm_protocol, rtnetlink(7)): whoever looks can tell whose it is, and nothing else is touched.
constexpr std::uint8_t kLocalRouteProtocol = 202;

/// Makes every address of `wanted` one of this machine's own (`ip route add local P dev lo table local proto 202`), and takes away routes
/// with our mark that are not wanted. Sockets can then be bound to any of them, and packets to them are delivered here. The same set again
/// changes nothing; outlives the process. Needs CAP_NET_ADMIN.
/// Returns 0 or the negative errno, with what was being done in `failed`; what was done before stays.
int set_local_routes(const std::vector<Prefix>& wanted, std::string& failed);

}  // namespace holdfast::net
