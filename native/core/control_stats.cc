#include <algorithm>

#include "control_table.h"

namespace holdfast::proxy {
namespace {

void add(HistogramStats& total, const Histogram& one) {
  for (std::size_t i = 0; i < total.classes.size(); ++i) total.classes[i] += one.classes()[i].value();
  total.sum_us += one.sum_us();
}

}  // namespace

std::vector<ListenerStats> ControlTable::changed_stats() {
  std::vector<ListenerStats> changed;
  for (auto& [id, record] : records_) {
    if (!record.config) continue;
    std::uint64_t sum = 0;
    for (const ListenerBlock& block : record.counters->blocks()) sum += block.sum();
    // A change is told twice: a worker that was counting may have been between two counters.
    const bool moved = sum != record.reported.sum;
    if (!moved && !record.reported.restless) continue;
    changed.push_back(stats_of(id, record));
    const ListenerStats& row = changed.back();
    const bool ejected = std::any_of(row.endpoints.begin(), row.endpoints.end(), [](const EndpointStats& each) { return each.ejected; });
    record.reported = {sum, moved || row.active > 0 || ejected};
  }
  return changed;
}

std::optional<ListenerStats> ControlTable::stats(ListenerId id) const {
  const auto found = records_.find(id);
  if (found == records_.end() || !found->second.config) return std::nullopt;
  return stats_of(id, found->second);
}

ListenerStats ControlTable::stats_of(ListenerId id, const Record& record) {
  ListenerStats stats{};
  stats.id = id;
  std::uint64_t ended = 0;
  std::uint64_t accepted = 0;
  for (const ListenerBlock& block : record.counters->blocks()) {
    // What has ended is read before what was accepted, so that there are never fewer of these.
    for (std::size_t i = 0; i < kOutcomes; ++i) {
      const std::uint64_t value = block.ended[i].value();
      stats.ended[i] += value;
      ended += value;
    }
    accepted += block.accepted.value();
    stats.bytes_in += block.bytes_in.value();
    stats.bytes_out += block.bytes_out.value();
    stats.dial_failures += block.dial_failures.value();
    stats.limited += block.limited.value();
    stats.evicted += block.evicted.value();
    stats.dropped += block.dropped.value();
    if (const Times* times = block.measured()) {
      if (!stats.times) stats.times.emplace();
      add(stats.times->dial, times->dial);
      add(stats.times->connection, times->connection);
    }
  }
  stats.active = accepted > ended ? accepted - ended : 0;
  stats.endpoints.reserve(record.endpoints.size());
  for (const auto& [address, endpoint] : record.endpoints) {
    const auto active = active_connections(*endpoint.counters);
    if (endpoint.draining && active == 0) continue;
    const auto total = endpoint.counters->sum([](const EndpointBlock& block) -> const Counter& { return block.opened; });
    stats.endpoints.push_back({address, active, total, endpoint.draining, endpoint.counters->health.ejected()});
  }
  return stats;
}

}  // namespace holdfast::proxy
