#include "affinity.h"

#include "rendezvous.h"

namespace holdfast::proxy {

std::size_t AffinityTable::KeyHash::operator()(const Key& key) const noexcept { return hash_bytes(key.bytes); }

std::optional<net::SocketAddress> AffinityTable::find(const net::SocketAddress& client, net::Clock::time_point now,
                                                      net::Clock::duration lasts) {
  const Key key{client.bytes};
  Shard& shard = shard_of(key);
  const std::lock_guard lock(shard.mutex);
  const auto place = shard.places.find(key);
  if (place == shard.places.end()) return std::nullopt;
  Entry& entry = *place->second;
  if (now - entry.seen >= lasts) {
    shard.order.erase(place->second);
    shard.places.erase(place);
    return std::nullopt;
  }
  entry.seen = now;
  shard.order.splice(shard.order.begin(), shard.order, place->second);
  return entry.endpoint;
}

void AffinityTable::put(const net::SocketAddress& client, const net::SocketAddress& endpoint, net::Clock::time_point now) {
  const Key key{client.bytes};
  Shard& shard = shard_of(key);
  const std::lock_guard lock(shard.mutex);
  const auto place = shard.places.find(key);
  if (place != shard.places.end()) {
    *place->second = {key, endpoint, now};
    shard.order.splice(shard.order.begin(), shard.order, place->second);
    return;
  }
  if (shard.order.size() >= kShardSize) {
    shard.places.erase(shard.order.back().key);
    shard.order.pop_back();
  }
  shard.order.push_front({key, endpoint, now});
  shard.places.emplace(key, shard.order.begin());
}

}  // namespace holdfast::proxy
