#include <cstdlib>
#include <cstring>

#include "neighbour.h"

namespace {

using namespace holdfast::net;

constexpr Mac kMac{2, 0, 0, 0, 0, 1};

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

/// Whatever arrives is read within its bounds; whoever announces an address is who has claimed it, and who probes has claimed nothing.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  for (const Family family : {Family::ipv4, Family::ipv6}) {
    SocketAddress address;
    address.family = family;
    if (size >= address.bytes.size()) std::memcpy(address.bytes.data(), data, family == Family::ipv4 ? 4 : address.bytes.size());
    (void)arp_claim(data, size, address);
    (void)icmp6_claim(data, size, address);
    for (const Neighbour what : {Neighbour::announce, Neighbour::probe}) {
      const bool announces = what == Neighbour::announce;
      const auto made = family == Family::ipv4 ? arp_frame(what, kMac, address) : icmp6_message(what, kMac, address);
      const auto claim = family == Family::ipv4 ? arp_claim(made.data(), made.size(), address) : icmp6_claim(made.data(), made.size(), address);
      // 0.0.0.0 is what one who asks says of itself.
      if (family == Family::ipv6 || address != SocketAddress{}) require(claim.has_value() == announces && (!announces || *claim == kMac));
    }
  }
  return 0;
}
