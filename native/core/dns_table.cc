#include "dns_table.h"

#include <cstring>

namespace holdfast::dns {
namespace {

constexpr std::uint64_t kOdd = 0x9e37'79b9'7f4a'7c15;

std::uint64_t fold(std::uint64_t a, std::uint64_t b) noexcept {
  const auto product = static_cast<unsigned __int128>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

/// A pointer to the question's name.
bool is_of_question(const std::uint8_t* owner) noexcept { return owner[0] == 0xc0 && owner[1] == kHeaderSize; }

bool rotates(const Body& body, std::span<const std::uint8_t> message) noexcept {
  if (body.counts[0] < 2) return false;
  for (std::size_t i = 0; i < body.counts[0]; ++i) {
    const Record& record = body.records[i];
    if ((record.type != type::kA && record.type != type::kAaaa) || record.type != body.records[0].type || record.record_class != kClassIn ||
        !is_of_question(message.data() + record.begin)) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::size_t KeyHash::operator()(std::string_view key) const noexcept {
  std::uint64_t hash = seed_ ^ key.size();
  for (; key.size() >= 8; key.remove_prefix(8)) {
    std::uint64_t word;
    std::memcpy(&word, key.data(), 8);
    hash = fold(hash ^ word, seed_ | 1);
  }
  std::uint64_t rest = 0;
  std::memcpy(&rest, key.data(), key.size());
  return fold(hash ^ rest, kOdd ^ seed_);
}

Body body_of(std::span<const std::uint8_t> message, const Message& read, std::vector<Record> records) {
  Body body;
  body.bytes.assign(message.begin() + static_cast<std::ptrdiff_t>(read.question_end), message.end());
  body.records = std::move(records);
  body.counts = {read.counts[1], read.counts[2], read.counts[3]};
  body.rotates = rotates(body, message);
  return body;
}

const Body* ReadyName::find(std::uint16_t type) const noexcept {
  for (const TypedAnswer& answer : answers) {
    if (answer.type == type || type == type::kAny) return &answer.body;
  }
  return nullptr;
}

void ZoneTable::apply(const ZoneDelta& delta) {
  serial_ = delta.serial;
  if (delta.apexes) {
    apexes_.clear();
    apex_sizes_.reset();
    apex_list_ = delta.apexes;
    for (const Apex& apex : *apex_list_) {
      apexes_.emplace(apex.name, &apex);
      apex_sizes_.set(apex.name.size());
    }
  }
  for (const std::string& id : delta.remove) remove(id);
  for (const auto& group : delta.upsert) upsert(group);
}

void ZoneTable::remove(std::string_view id) {
  const auto found = groups_.find(id);
  if (found == groups_.end()) return;
  // Keys are the group's own text: it must outlive them.
  const std::shared_ptr<const ReadyGroup> group = found->second;
  groups_.erase(found);
  for (const ReadyName& name : group->names) {
    const auto entry = names_.find(name.name);
    // Another group may have taken the name over.
    if (entry != names_.end() && entry->second.owner == group.get()) names_.erase(entry);
  }
}

void ZoneTable::upsert(const std::shared_ptr<const ReadyGroup>& group) {
  remove(group->id);
  groups_.emplace(group->id, group);
  for (const ReadyName& name : group->names) {
    names_.erase(name.name);
    names_.emplace(name.name, Entry{&name, group.get()});
  }
}

const ReadyName* ZoneTable::find(std::string_view name) const noexcept {
  const auto found = names_.find(name);
  return found == names_.end() ? nullptr : found->second.name;
}

const Apex* ZoneTable::apex_of(std::string_view name) const noexcept {
  while (!name.empty()) {
    if (apex_sizes_.test(name.size())) {
      const auto found = apexes_.find(name);
      if (found != apexes_.end()) return found->second;
    }
    name.remove_prefix(1 + static_cast<std::uint8_t>(name.front()));
  }
  return nullptr;
}

std::string cache_key(std::string_view name, std::uint16_t type, bool dnssec_ok, bool checking_disabled) {
  std::string key(name);
  key.push_back(static_cast<char>(type >> 8));
  key.push_back(static_cast<char>(type));
  key.push_back(static_cast<char>((dnssec_ok ? 1 : 0) + (checking_disabled ? 2 : 0)));
  return key;
}

void Cache::put(std::shared_ptr<const CacheEntry> entry) {
  remove(entry->key);
  if (index_.size() == kMost) remove(slots_.front().entry->key);
  slots_.push_back({std::move(entry)});
  index_.emplace(slots_.back().entry->key, std::prev(slots_.end()));
}

void Cache::remove(std::string_view key) {
  const auto found = index_.find(key);
  if (found == index_.end()) return;
  const auto slot = found->second;
  index_.erase(found);
  slots_.erase(slot);
}

void Cache::clear() {
  index_.clear();
  slots_.clear();
}

Cache::Hit Cache::find(std::string_view key, net::Clock::time_point now) {
  const auto found = index_.find(key);
  if (found == index_.end()) return {};
  Slot& slot = *found->second;
  if (slot.entry->expires_at <= now) {
    const auto gone = found->second;
    index_.erase(found);
    slots_.erase(gone);
    return {};
  }
  const bool refresh = !slot.told && slot.entry->refresh_at <= now;
  slot.told = slot.told || refresh;
  return {slot.entry.get(), refresh};
}

}  // namespace holdfast::dns
