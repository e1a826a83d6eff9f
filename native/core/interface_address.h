#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "socket_address.h"

namespace holdfast::net {

/// An address as it stands on an interface.
struct InterfaceAddress {
  std::string interface;
  SocketAddress address;
  std::uint8_t length = 0;
  /// Until the kernel takes it away, seconds; 2^32 - 1: never.
  std::uint32_t valid = 0;
};

/// All of the machine, of one family. 0 or the negative errno.
int list_addresses(Family family, std::vector<InterfaceAddress>& found);

/// Puts one address on an interface (as /32 or /128) until `until`, milliseconds of CLOCK_BOOTTIME, in whole seconds rounded down: from then
/// on the kernel takes it away without anybody's help. The same again exchanges its lifetime. What is left is measured right before the kernel
/// is told, so that a process that was stopped in between adds nothing that is over.
/// Returns the seconds, 0 where none is left and nothing was done, or the negative errno. Needs CAP_NET_ADMIN.
int lease_address(const std::string& interface, const SocketAddress& address, double until);

/// 0 also where there is none. Needs CAP_NET_ADMIN.
int remove_address(const InterfaceAddress& which);

}  // namespace holdfast::net
