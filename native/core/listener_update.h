#pragma once

#include <memory>
#include <vector>

#include "affinity.h"
#include "counters.h"
#include "events.h"
#include "listen_socket.h"
#include "table.h"

namespace holdfast::proxy {

struct Withdrawal {
  net::SocketAddress endpoint;
  std::shared_ptr<Drain> drain;
};

/// What the control side tells every worker about one listener: how it is from now on. The same object goes to all, nobody changes it.
struct ListenerUpdate {
  ListenerId id = 0;
  /// Null when the listener is removed.
  std::shared_ptr<const ListenerConfig> config;
  /// Null when it could not be bound.
  std::shared_ptr<ListenSocket> socket;
  std::shared_ptr<ListenerCounters> counters;
  /// In the order of the configuration's endpoints.
  std::vector<std::shared_ptr<EndpointCounters>> endpoint_counters;
  /// Null when clients are not bound to endpoints.
  std::shared_ptr<AffinityTable> affinity;
  std::vector<Withdrawal> withdrawn;
};

using UpdateBatch = std::shared_ptr<const std::vector<ListenerUpdate>>;

}  // namespace holdfast::proxy
