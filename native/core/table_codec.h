#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <variant>

#include "table.h"

namespace holdfast::proxy {

struct DecodeError {
  std::string problem;
};

/// Reads a table delta. All integers are little-endian; src/adapters/dataplane/table-codec.ts writes the same.
///
///   u32 magic "HFTD" · u16 version 2 · u16 zero · u32 removes · u32 upserts
///   remove: u32 id
///   upsert: u32 id · u8 family (4, 6) · u8 protocol (tcp 0, udp 1) · u8 algorithm · u8 accept PROXY (0, 1) · u8 send PROXY (0, 1, 2) · u8 refuse (0, 1)
///           · u16 port · u32 drain ms · u32 connect timeout ms · u32 affinity ms · u32 idle ms · u32 most connections
///           · u16 endpoints · u16 zero · 16 bytes address
///   endpoint: u8 family · u8 weight · u8 tier · u8 zero · u16 port · u16 zero · 16 bytes address
///
/// Whatever the bytes are, the answer is a delta in which every value is in its range, no id stands twice and no listener has
/// an endpoint twice, or the first problem.
std::variant<TableDelta, DecodeError> decode_table_delta(std::span<const std::uint8_t> bytes);

}  // namespace holdfast::proxy
