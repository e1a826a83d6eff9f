#include "conntrack_row.h"

#include <algorithm>
#include <array>

namespace holdfast::conntrack {
namespace {

constexpr std::size_t kPorts = 24;
constexpr std::size_t kAddresses = 32;
constexpr std::size_t kAddressBytes = 16;

template <typename Number>
void put(std::uint8_t* to, Number value) noexcept {
  for (std::size_t i = 0; i < sizeof value; ++i) to[i] = static_cast<std::uint8_t>(value >> (8 * (sizeof value - 1 - i)));
}

template <typename Number>
Number get(const std::uint8_t* from) noexcept {
  Number value = 0;
  for (std::size_t i = 0; i < sizeof value; ++i) value = static_cast<Number>(value << 8 | from[i]);
  return value;
}

std::optional<net::Family> family_of(std::uint8_t number) noexcept {
  if (number == 4) return net::Family::ipv4;
  if (number == 6) return net::Family::ipv6;
  return std::nullopt;
}

Entry entry_of(const std::uint8_t* row, net::Family family) noexcept {
  Entry entry{row[1], row[2], get<std::uint16_t>(row + 4), get<std::uint32_t>(row + 8), get<std::uint32_t>(row + 12), get<std::uint32_t>(row + 16), get<std::uint32_t>(row + 20), {}, {}};
  const std::array ends{&entry.original.source, &entry.original.destination, &entry.reply.source, &entry.reply.destination};
  for (std::size_t i = 0; i < ends.size(); ++i) {
    ends[i]->family = family;
    ends[i]->port = get<std::uint16_t>(row + kPorts + 2 * i);
    std::copy_n(row + kAddresses + kAddressBytes * i, family == net::Family::ipv4 ? 4 : kAddressBytes, ends[i]->bytes.begin());
  }
  return entry;
}

}  // namespace

void append_row(const Entry& entry, Bytes& rows) {
  rows.resize(rows.size() + kRowBytes);
  std::uint8_t* row = rows.data() + rows.size() - kRowBytes;
  row[0] = static_cast<std::uint8_t>(entry.original.source.family);
  row[1] = entry.protocol;
  row[2] = entry.tcp_state;
  put(row + 4, entry.zone);
  put(row + 8, entry.id);
  put(row + 12, entry.mark);
  put(row + 16, entry.status);
  put(row + 20, entry.timeout);
  const std::array ends{&entry.original.source, &entry.original.destination, &entry.reply.source, &entry.reply.destination};
  for (std::size_t i = 0; i < ends.size(); ++i) {
    put(row + kPorts + 2 * i, ends[i]->port);
    std::copy(ends[i]->bytes.begin(), ends[i]->bytes.end(), row + kAddresses + kAddressBytes * i);
  }
}

std::optional<std::vector<Entry>> read_rows(std::span<const std::uint8_t> rows) {
  if (rows.size() % kRowBytes != 0) return std::nullopt;
  std::vector<Entry> entries;
  entries.reserve(rows.size() / kRowBytes);
  for (; !rows.empty(); rows = rows.subspan(kRowBytes)) {
    const auto family = family_of(rows[0]);
    if (!family) return std::nullopt;
    entries.push_back(entry_of(rows.data(), *family));
  }
  return entries;
}

std::optional<std::vector<Selector>> read_selectors(std::span<const std::uint8_t> packed) {
  if (packed.size() % kSelectorBytes != 0) return std::nullopt;
  std::vector<Selector> selectors;
  for (; !packed.empty(); packed = packed.subspan(kSelectorBytes)) {
    const auto family = family_of(packed[4]);
    if (!family || packed[0] > static_cast<std::uint8_t>(Part::backend)) return std::nullopt;
    Selector selector{static_cast<Part>(packed[0]), packed[1], {*family, get<std::uint16_t>(packed.data() + 2), {}}};
    std::copy_n(packed.data() + 8, *family == net::Family::ipv4 ? 4 : kAddressBytes, selector.address.bytes.begin());
    selectors.push_back(selector);
  }
  return selectors;
}

}  // namespace holdfast::conntrack
