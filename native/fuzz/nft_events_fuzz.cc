#include "nft_events.h"

#include <cstdlib>

/// Whatever the kernel tells, what is kept of it is no larger than it, and bounded.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace holdfast::nft;
  Changes changes;
  for (int i = 0; i < 2; ++i) read_changes({data, size}, 7, changes);
  if (changes.tables.size() > kMostChanges) std::abort();
  for (const Change& change : changes.tables) {
    if (change.port == 7 || change.table.size() + change.command.size() > size) std::abort();
  }
  return 0;
}
