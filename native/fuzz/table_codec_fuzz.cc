#include <cstdlib>
#include <set>

#include "table_codec.h"

namespace {

using namespace holdfast::proxy;

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

/// Whatever is read is in range, and no larger than the message.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto decoded = decode_table_delta({data, size});
  const auto* delta = std::get_if<TableDelta>(&decoded);
  if (delta == nullptr) {
    require(!std::get<DecodeError>(decoded).problem.empty());
    return 0;
  }
  require(delta->remove.size() * 4 + delta->upsert.size() * 52 <= size);
  std::set<ListenerId> ids(delta->remove.begin(), delta->remove.end());
  require(ids.size() == delta->remove.size());
  for (const ListenerConfig& config : delta->upsert) {
    require(ids.insert(config.id).second && config.connect_timeout.count() > 0);
    for (const Endpoint& endpoint : config.endpoints) {
      require(endpoint.weight >= 1 && endpoint.weight <= 100 && endpoint.tier <= 1 && endpoint.address.port != 0);
    }
  }
  return 0;
}
