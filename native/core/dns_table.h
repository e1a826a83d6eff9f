#pragma once

#include <bitset>
#include <chrono>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "dns_message.h"
#include "event_loop.h"

namespace holdfast::dns {

/// Keys may be chosen by whoever asks: nobody who does not know the seed can choose their buckets.
class KeyHash {
 public:
  explicit KeyHash(std::uint64_t seed) noexcept : seed_(seed) {}
  std::size_t operator()(std::string_view key) const noexcept;

 private:
  std::uint64_t seed_;
};

template <typename Value>
using KeyMap = std::unordered_map<std::string_view, Value, KeyHash>;

/// Everything behind the question, which has the same length in every message that it is sent in: pointers hold.
struct Body {
  std::vector<std::uint8_t> bytes;
  /// Their places in the message; the first begins where the question ends.
  std::vector<Record> records;
  std::array<std::uint16_t, 3> counts{};
  /// All answers are addresses of the name that was asked for, more than one: their order changes each time.
  bool rotates = false;
};

/// `message` is a well-formed one with these records and one question.
Body body_of(std::span<const std::uint8_t> message, const Message& read, std::vector<Record> records);

struct TypedAnswer {
  std::uint16_t type;
  Body body;
};

/// A name that is there; without answers for the sake of those below it.
struct ReadyName {
  std::string name;
  std::vector<TypedAnswer> answers;

  /// Null when there is none; ANY is answered with the first (RFC 8482, 4.1).
  const Body* find(std::uint16_t type) const noexcept;
};

/// Names that come and go together.
struct ReadyGroup {
  std::string id;
  std::vector<ReadyName> names;
};

/// Where a zone begins, and its SOA record but for the serial.
struct Apex {
  std::string name;
  std::string server;
  std::string mailbox;
  std::uint32_t refresh = 0;
  std::uint32_t retry = 0;
  std::uint32_t expire = 0;
  std::uint32_t ttl = 0;
  /// What is between it and an address exists.
  bool reverse = false;
};

struct ZoneDelta {
  std::uint32_t serial = 0;
  /// All of them, or null: as they were.
  std::shared_ptr<const std::vector<Apex>> apexes;
  std::vector<std::string> remove;
  std::vector<std::shared_ptr<const ReadyGroup>> upsert;
};

/// One thread's view of the zone: shared answers, a table of its own.
class ZoneTable {
 public:
  explicit ZoneTable(std::uint64_t seed) : names_(0, KeyHash(seed)), groups_(0, KeyHash(seed)), apexes_(0, KeyHash(seed)) {}

  void apply(const ZoneDelta& delta);

  /// Null when there is none. Both take names in lower case.
  const ReadyName* find(std::string_view name) const noexcept;
  /// The zone that the name is in.
  const Apex* apex_of(std::string_view name) const noexcept;
  std::uint32_t serial() const noexcept { return serial_; }
  std::size_t size() const noexcept { return names_.size(); }

 private:
  struct Entry {
    const ReadyName* name;
    const ReadyGroup* owner;
  };

  void remove(std::string_view id);
  void upsert(const std::shared_ptr<const ReadyGroup>& group);

  KeyMap<Entry> names_;
  KeyMap<std::shared_ptr<const ReadyGroup>> groups_;
  KeyMap<const Apex*> apexes_;
  std::shared_ptr<const std::vector<Apex>> apex_list_;
  /// Lengths of the apexes' names: ends of other lengths are not looked for.
  std::bitset<kMostNameBytes + 1> apex_sizes_;
  std::uint32_t serial_ = 0;
};

/// Name, type, DO and CD (RFC 4035, 3.2).
std::string cache_key(std::string_view name, std::uint16_t type, bool dnssec_ok, bool checking_disabled);

struct CacheEntry {
  std::string key;
  std::uint16_t flags = 0;
  Body body;
  net::Clock::time_point put_at;
  net::Clock::time_point expires_at;
  net::Clock::time_point refresh_at;
};

/// One thread's view of the cache: the oldest entry gives way.
class Cache {
 public:
  static constexpr std::size_t kMost = 10'000;

  explicit Cache(std::uint64_t seed) : index_(0, KeyHash(seed)) {}

  void put(std::shared_ptr<const CacheEntry> entry);
  void remove(std::string_view key);
  void clear();

  struct Hit {
    const CacheEntry* entry = nullptr;
    /// Told once of each entry.
    bool refresh = false;
  };
  Hit find(std::string_view key, net::Clock::time_point now);
  std::size_t size() const noexcept { return index_.size(); }

 private:
  struct Slot {
    std::shared_ptr<const CacheEntry> entry;
    bool told = false;
  };

  std::list<Slot> slots_;
  KeyMap<std::list<Slot>::iterator> index_;
};

}  // namespace holdfast::dns
