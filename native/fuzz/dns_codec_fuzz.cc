#include <cstdlib>

#include "dns_codec.h"

namespace {

using namespace holdfast::dns;

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

/// Whatever is read is no larger than the message, and can be put into a table and taken out of it.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto decoded = decode_zone_delta({data, size});
  const auto* found = std::get_if<std::shared_ptr<const ZoneDelta>>(&decoded);
  if (found == nullptr) {
    require(!std::get<DecodeError>(decoded).problem.empty());
    return 0;
  }
  const ZoneDelta& delta = **found;
  require(delta.remove.size() * 3 + delta.upsert.size() * 5 <= size);
  ZoneTable table(1);
  table.apply(delta);
  ZoneDelta gone;
  for (const auto& group : delta.upsert) {
    for (const ReadyName& name : group->names) require(table.find(name.name) != nullptr);
    gone.remove.push_back(group->id);
  }
  table.apply(gone);
  require(table.size() == 0);
  return 0;
}
