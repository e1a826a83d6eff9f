#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <variant>

#include "dns_table.h"

namespace holdfast::dns {

struct DecodeError {
  std::string problem;
};

/// Reads a zone delta. All integers are little-endian but those within bodies; src/adapters/dns/zone-codec.ts writes the same.
///
///   u32 magic "HFDN" · u16 version 1 · u16 zero · u32 serial · u32 apexes (2^32 - 1: as they were) · u32 removes · u32 upserts
///   apex: name · name of the server · mailbox · u32 refresh · u32 retry · u32 expire · u32 ttl · u8 reverse (0, 1)
///   remove: u16 length · id
///   upsert: u16 length · id · u16 names
///   name: name · u16 answers
///   answer: u16 type · u16 answers · u16 authority · u16 additional · u16 length · body
///
/// Names are on the wire's form, in lower case, with the root's byte. Whatever the bytes are, the answer is a delta in which every body is the well-formed
/// rest of a message with its name's question, no id stands twice and no group has a name twice, or the first problem.
std::variant<std::shared_ptr<const ZoneDelta>, DecodeError> decode_zone_delta(std::span<const std::uint8_t> bytes);

/// Reads a response that is to be kept: one question of class IN, no OPT record.
std::variant<std::shared_ptr<CacheEntry>, DecodeError> decode_cache_entry(std::span<const std::uint8_t> message, bool dnssec_ok, bool checking_disabled);

/// The key of the entry of a message's question; empty when it has none.
std::string decode_cache_key(std::span<const std::uint8_t> message, bool dnssec_ok, bool checking_disabled);

}  // namespace holdfast::dns
