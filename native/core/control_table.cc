#include "control_table.h"

#include <algorithm>

#include "udp_socket.h"

namespace holdfast::proxy {
namespace {

/// Whether `socket` is what a listener with this address would open: a listener that asks for any port keeps the one it has.
bool serves(const ListenSocket& socket, const net::SocketAddress& address) {
  net::SocketAddress bound = socket.bound();
  if (address.port == 0) bound.port = 0;
  return bound == address;
}

bool has(const ListenerConfig& config, const net::SocketAddress& endpoint) {
  return std::any_of(config.endpoints.begin(), config.endpoints.end(), [&](const Endpoint& e) { return e.address == endpoint; });
}

}  // namespace

ControlTable::Applied ControlTable::apply(const TableDelta& delta) {
  forget_removed();
  std::erase_if(lingering_, [](const auto& entry) { return entry.second.expired(); });
  Applied applied;
  auto updates = std::make_shared<std::vector<ListenerUpdate>>();
  // Until this function ends the spares stay open: no gap for those that take one over, new before old for those that move.
  Spares spares = give_up_sockets(delta);
  for (const ListenerId id : delta.remove) remove(id, *updates);
  for (const ListenerConfig& config : delta.upsert) applied.results.push_back(upsert(config, spares, *updates));
  applied.updates = std::move(updates);
  return applied;
}

ControlTable::Spares ControlTable::give_up_sockets(const TableDelta& delta) {
  Spares spares;
  const auto give_up = [&](Record& record) {
    const SocketKey key(record.config->protocol, record.socket->bound());
    spares.emplace(key, record.socket);
    if (key.first == Protocol::udp) lingering_.insert_or_assign(key, record.socket);
    record.socket.reset();
    --listening_;
  };
  for (const ListenerId id : delta.remove) {
    const auto found = records_.find(id);
    if (found != records_.end() && found->second.socket) give_up(found->second);
  }
  for (const ListenerConfig& config : delta.upsert) {
    const auto found = records_.find(config.id);
    if (found == records_.end() || !found->second.socket) continue;
    const bool same = found->second.config->protocol == config.protocol;
    if (!same || !serves(*found->second.socket, config.address)) give_up(found->second);
  }
  return spares;
}

void ControlTable::remove(ListenerId id, std::vector<ListenerUpdate>& updates) {
  const auto found = records_.find(id);
  if (found == records_.end() || !found->second.config) return;
  Record& record = found->second;
  ListenerUpdate update;
  update.id = id;
  update.withdrawn = withdraw_missing(id, record, nullptr);
  updates.push_back(std::move(update));
  record.config.reset();
  removed_.push_back(id);
}

ListenResult ControlTable::upsert(const ListenerConfig& config, Spares& spares, std::vector<ListenerUpdate>& updates) {
  Record& record = records_[config.id];
  const bool was_listening = record.socket != nullptr;
  // What one protocol carries cannot go on under the other.
  if (record.config && record.config->protocol != config.protocol) remove(config.id, updates);
  ListenResult result{config.id, 0, std::nullopt};
  if (!was_listening) result.error = open(record, config, spares);
  if (record.socket) result.port = record.socket->bound().port;
  if (was_listening && record.config && *record.config == config) return result;

  if (!record.counters) record.counters = std::make_shared<ListenerCounters>(workers_);
  ListenerUpdate update;
  update.id = config.id;
  update.config = record.config = std::make_shared<const ListenerConfig>(config);
  update.socket = record.socket;
  update.counters = record.counters;
  record.reported.restless = true;
  if (config.affinity.count() == 0) record.affinity.reset();
  else if (!record.affinity) record.affinity = std::make_shared<AffinityTable>();
  update.affinity = record.affinity;
  update.withdrawn = withdraw_missing(config.id, record, &config);
  for (const Endpoint& endpoint : config.endpoints) {
    EndpointRecord& known = record.endpoints[endpoint.address];
    if (!known.counters) known.counters = std::make_shared<EndpointCounters>(workers_);
    known.draining = false;
    update.endpoint_counters.push_back(known.counters);
  }
  updates.push_back(std::move(update));
  return result;
}

std::optional<ListenError> ControlTable::open(Record& record, const ListenerConfig& config, Spares& spares) {
  if (auto open = found(config, spares)) {
    record.socket = std::move(open);
  } else if (listening_ >= listener_budget()) {
    return ListenError{BindFailure::fd_limit, "all " + std::to_string(listener_budget()) + " listening sockets that the limit of open files allows are in use"};
  } else {
    auto opened = config.protocol == Protocol::udp ? open_udp(config.address, config.id % workers_) : ListenSocket::open(config.address);
    if (auto* error = std::get_if<ListenError>(&opened)) return std::move(*error);
    record.socket = std::move(std::get<std::shared_ptr<ListenSocket>>(opened));
  }
  ++listening_;
  return std::nullopt;
}

std::shared_ptr<ListenSocket> ControlTable::found(const ListenerConfig& config, Spares& spares) {
  const SocketKey key(config.protocol, config.address);
  if (auto spare = spares.extract(key)) return std::move(spare.mapped());
  const auto old = lingering_.find(key);
  if (old != lingering_.end()) {
    if (auto socket = old->second.lock()) return socket;
  }
  auto inherited = inherited_.extract(key);
  if (!inherited) return nullptr;
  inherited.mapped()->set_owner(config.id % workers_);
  return std::move(inherited.mapped());
}

/// Those of the record's endpoints that `config` has not (all when it is null) and that are not draining yet. Forgets those that have drained.
std::vector<Withdrawal> ControlTable::withdraw_missing(ListenerId id, Record& record, const ListenerConfig* config) {
  std::vector<Withdrawal> withdrawn;
  for (auto entry = record.endpoints.begin(); entry != record.endpoints.end();) {
    auto& [address, endpoint] = *entry;
    const bool present = config != nullptr && has(*config, address);
    if (!present && endpoint.draining && active_connections(*endpoint.counters) == 0) {
      entry = record.endpoints.erase(entry);
      continue;
    }
    if (!present && !endpoint.draining) {
      endpoint.draining = true;
      endpoint.counters->health.reset();
      withdrawn.push_back({address, std::make_shared<Drain>(workers_, id, address)});
    }
    ++entry;
  }
  return withdrawn;
}

void ControlTable::forget_removed() {
  std::erase_if(removed_, [this](ListenerId id) {
    const auto found = records_.find(id);
    if (found == records_.end() || found->second.config) return true;  // it has come back
    const auto& endpoints = found->second.endpoints;
    const bool drains = std::any_of(endpoints.begin(), endpoints.end(),
                                    [](const auto& entry) { return active_connections(*entry.second.counters) > 0; });
    if (!drains) records_.erase(found);
    return !drains;
  });
}

std::vector<ListeningSocket> ControlTable::sockets() const {
  std::vector<ListeningSocket> listening;
  for (const auto& [id, record] : records_) {
    if (record.socket) listening.push_back({record.config->protocol, record.socket->bound(), record.socket->fd()});
  }
  return listening;
}

bool ControlTable::inherit(net::UniqueFd fd, Protocol protocol) {
  auto socket = ListenSocket::inherit(std::move(fd), protocol);
  if (socket) inherited_.insert_or_assign(SocketKey(protocol, socket->bound()), socket);
  return socket != nullptr;
}

void ControlTable::close_all() noexcept {
  inherited_.clear();
  for (auto& [id, record] : records_) record.socket.reset();
  listening_ = 0;
}

}  // namespace holdfast::proxy
