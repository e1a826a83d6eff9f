#pragma once

#include <cstdint>
#include <span>

#include "dns_message.h"
#include "dns_table.h"

namespace holdfast::dns {

/// What we take and send by UDP at most: not fragmented on any usual path (DNS flag day 2020).
constexpr std::size_t kUdpBytes = 1'232;
constexpr std::size_t kUdpBytesWithoutEdns = 512;

/// All that one thread answers from.
struct View {
  View(std::uint64_t seed, bool hands_up) : zone(seed), cache(seed), hands_up(hands_up) {}

  ZoneTable zone;
  Cache cache;
  /// Whether there is somebody who knows names outside the zone; else they are refused.
  bool hands_up;
  /// Of answers whose order changes.
  std::uint32_t turn = 0;
};

enum class Verdict : std::uint8_t { silent, answered, handed_up };

struct Outcome {
  Verdict verdict = Verdict::silent;
  /// Bytes of the answer.
  std::size_t size = 0;
  /// Of the question; 0 when there was none that could be read.
  std::uint16_t type = 0;
  Rcode rcode = Rcode::noerror;
  bool truncated = false;
  bool from_cache = false;
  /// The answer is old enough to be asked for again.
  bool refresh = false;
  /// What the asker takes by UDP.
  std::uint16_t limit = kUdpBytesWithoutEdns;
};

/// The answer by UDP to whatever came, into `out`, which has kUdpBytes; as src/domain/dns/answer.ts says it.
Outcome respond(std::span<const std::uint8_t> query, View& view, net::Clock::time_point now, std::span<std::uint8_t, kUdpBytes> out);

struct Cut {
  /// 0 when `message` is no well-formed response.
  std::size_t size = 0;
  std::uint16_t type = 0;
  Rcode rcode = Rcode::noerror;
  bool truncated = false;
};

/// `message` in at most `limit` bytes: cut at a record's beginning with TC set, the OPT record stays (RFC 6891, 7); records of the additional section are
/// only left out (RFC 2181, 9).
Cut cut_to(std::span<const std::uint8_t> message, std::size_t limit, std::span<std::uint8_t, kUdpBytes> out);

}  // namespace holdfast::dns
