#pragma once

#include "conntrack_entry.h"

namespace holdfast::conntrack {

/// Entries for JavaScript and back, one after the other, 96 bytes each; numbers in network order:
///   0 family (4 or 6), 1 protocol, 2 TCP state, 3 nothing, 4 zone (2 bytes), 6 nothing, 8 id, 12 mark, 16 status, 20 timeout (4 bytes each),
///   24 ports (2 bytes each) and 32 addresses (16 bytes each) of the original's source and destination and the reply's source and destination.
constexpr std::size_t kRowBytes = 96;

void append_row(const Entry& entry, Bytes& rows);
/// Nothing when the rows are none of this form.
std::optional<std::vector<Entry>> read_rows(std::span<const std::uint8_t> rows);

/// 24 bytes each: 0 part, 1 protocol, 2 port, 4 family, 5 nothing, 8 address.
constexpr std::size_t kSelectorBytes = 24;
std::optional<std::vector<Selector>> read_selectors(std::span<const std::uint8_t> packed);

}  // namespace holdfast::conntrack
