#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "event_loop.h"
#include "socket_address.h"

namespace holdfast::proxy {

/// Which endpoint a client address was given. Shared by all workers, which ask once per new connection: 16 parts, each behind its own mutex.
/// Holds at most 32,768 clients, about 5 MB; the one that has been quiet the longest goes first.
class AffinityTable {
 public:
  static constexpr std::size_t kShards = 16;
  static constexpr std::size_t kShardSize = 2048;

  /// The client's endpoint, when it had a new connection less than `lasts` ago; the time begins anew.
  std::optional<net::SocketAddress> find(const net::SocketAddress& client, net::Clock::time_point now, net::Clock::duration lasts);
  void put(const net::SocketAddress& client, const net::SocketAddress& endpoint, net::Clock::time_point now);

 private:
  /// The port is not part of who a client is.
  struct Key {
    std::array<std::uint8_t, 16> bytes;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const noexcept;
  };
  struct Entry {
    Key key;
    net::SocketAddress endpoint;
    net::Clock::time_point seen;
  };
  struct Shard {
    std::mutex mutex;
    /// The latest first.
    std::list<Entry> order;
    std::unordered_map<Key, std::list<Entry>::iterator, KeyHash> places;
  };

  Shard& shard_of(const Key& key) noexcept { return shards_[KeyHash()(key) % kShards]; }

  std::array<Shard, kShards> shards_;
};

}  // namespace holdfast::proxy
