#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "netlink_message.h"

namespace holdfast::nft {

using netlink::Bytes;

/// What the kernel says of a batch, read from any number of datagrams.
struct Answers {
  /// The first error that it gave, as negative errno; 0 while there is none.
  int error = 0;
  std::uint32_t error_sequence = 0;
  /// The kernel's own words (NETLINK_EXT_ACK), or "".
  std::string text;
  /// Sequence numbers that succeeded.
  std::vector<std::uint32_t> done;
};

/// False when the datagram is none of netlink's form; what stood before that is in `answers`.
bool read_answers(std::span<const std::uint8_t> datagram, Answers& answers);

enum class ObjectKind : std::uint8_t { table, chain, rule, set, element, counter };

/// One object of a dump. What its kind does not have is empty.
struct Object {
  ObjectKind kind = ObjectKind::table;
  std::uint8_t family = 0;
  std::string table;
  /// Of a chain and a rule; of an element the chain of its verdict.
  std::string chain;
  std::string set;
  /// Of a named counter, with what it has counted.
  std::string counter;
  std::uint64_t packets = 0;
  std::uint64_t bytes = 0;
  std::uint32_t flags = 0;
  /// Which socket owns the table: its netlink port.
  std::uint32_t owner = 0;
  std::uint64_t handle = 0;
  /// Of a base chain.
  std::string type;
  std::optional<std::uint32_t> hook;
  std::int32_t priority = 0;
  /// Of an ingress chain, as long as it is there.
  std::string device;
  /// NF_DROP or NF_ACCEPT.
  std::uint32_t policy = 0;
  /// Of an element.
  /// Of an element that goes by itself: milliseconds until then; 0: it stays.
  std::uint64_t expires_ms = 0;
  Bytes key;
  Bytes data;
  /// The rule's expressions as the kernel sent them: netlink attributes.
  Bytes expressions;
};

struct Dump {
  std::vector<Object> objects;
  /// The kernel changed meanwhile (NLM_F_DUMP_INTR): what was read is of no one moment.
  bool interrupted = false;
  bool ended = false;
  /// Negative errno, 0 while there is none.
  int error = 0;
};

/// Takes what belongs to the request `sequence`. False when the datagram is none of netlink's form.
bool read_dump(std::span<const std::uint8_t> datagram, std::uint32_t sequence, Dump& dump);

/// The generation of the whole ruleset in an answer to NFT_MSG_GETGEN.
std::optional<std::uint32_t> read_generation(std::span<const std::uint8_t> datagram, std::uint32_t sequence) noexcept;

}  // namespace holdfast::nft
