#include "conntrack_message.h"

/// Whatever the kernel's answer is, an entry of it has tuples of one family.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace holdfast;
  for (std::span<const std::uint8_t> rest(data, size); const auto message = netlink::next_message(rest);) {
    const auto entry = conntrack::read_entry(*message);
    conntrack::read_answer(*message);
    if (entry && entry->original.source.family != entry->reply.destination.family) __builtin_trap();
  }
  return 0;
}
