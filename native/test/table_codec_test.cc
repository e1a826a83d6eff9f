#include "table_codec.h"

#include <gtest/gtest.h>

#include <functional>

namespace holdfast::proxy {
namespace {

using Bytes = std::vector<std::uint8_t>;

/// Removes 7; upserts 1: TCP 10.0.0.1:80, least-connections, PROXY in and v2 out, affinity 3 h, idle 60 s, at most 1,000 connections, endpoints
/// 10.0.0.2:8080 weight 3 and [::1]:81 weight 1 tier 1. Written out, not built by the code under test;
/// test/adapters/dataplane/table-codec.test.ts expects the encoder to make the same.
const Bytes kGood = {
    'H', 'F', 'T', 'D', 2, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0,                         // header
    7, 0, 0, 0,                                                                     // remove
    1, 0, 0, 0, 4, 0, 2, 1, 2, 0, 80, 0, 0x30, 0x75, 0, 0, 0xb8, 0x0b, 0, 0,        // id to port, 30000 ms, 3000 ms
    0x80, 0xcb, 0xa4, 0, 0x60, 0xea, 0, 0, 0xe8, 3, 0, 0,                              // affinity, idle, connections
    2, 0, 0, 0, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,                    // endpoints, address
    4, 3, 0, 0, 0x90, 0x1f, 0, 0, 10, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  //
    6, 1, 1, 0, 81, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
};
constexpr std::size_t kUpsertAt = 20;
constexpr std::size_t kFirstEndpointAt = 72;

std::string problem(const Bytes& bytes) {
  const auto decoded = decode_table_delta(bytes);
  const auto* error = std::get_if<DecodeError>(&decoded);
  return error == nullptr ? "" : error->problem;
}

TEST(TableCodec, ReadsWhatIsWritten) {
  const auto decoded = decode_table_delta(kGood);
  const auto* delta = std::get_if<TableDelta>(&decoded);
  ASSERT_NE(delta, nullptr) << problem(kGood);
  EXPECT_EQ(delta->remove, std::vector<ListenerId>{7});
  ListenerConfig wanted;
  wanted.id = 1;
  wanted.address = {net::Family::ipv4, 80, {10, 0, 0, 1}};
  wanted.algorithm = Algorithm::least_connections;
  wanted.accept_proxy = true;
  wanted.send_proxy = ProxyHeader::v2;
  wanted.drain = std::chrono::seconds(30);
  wanted.connect_timeout = std::chrono::seconds(3);
  wanted.affinity = std::chrono::hours(3);
  wanted.idle = std::chrono::minutes(1);
  wanted.max_connections = 1'000;
  wanted.endpoints.push_back({{net::Family::ipv4, 8080, {10, 0, 0, 2}}, 3, 0});
  wanted.endpoints.push_back({{net::Family::ipv6, 81, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}}, 1, 1});
  ASSERT_EQ(delta->upsert.size(), 1U);
  EXPECT_EQ(delta->upsert[0], wanted);
}

TEST(TableCodec, AnEmptyDeltaIsOne) {
  EXPECT_EQ(problem({'H', 'F', 'T', 'D', 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}), "");
}

TEST(TableCodec, EveryPrefixIsTruncated) {
  for (std::size_t size = 0; size < kGood.size(); ++size) {
    EXPECT_EQ(problem(Bytes(kGood.begin(), kGood.begin() + static_cast<std::ptrdiff_t>(size))), "truncated") << size;
  }
}

struct Refused {
  const char* name;
  std::function<void(Bytes&)> spoil;
  const char* problem;
};

TEST(TableCodec, RefusesWhatIsOutOfRange) {
  const std::vector<Refused> cases = {
      {"magic", [](Bytes& b) { b[0] = 'h'; }, "not a table delta"},
      {"version", [](Bytes& b) { b[4] = 1; }, "unknown version 1"},
      {"reserved", [](Bytes& b) { b[6] = 1; }, "reserved bytes are not zero"},
      {"removes beyond the message", [](Bytes& b) { b[11] = 0xff; }, "truncated"},
      {"upserts beyond the message", [](Bytes& b) { b[15] = 0xff; }, "truncated"},
      {"family", [](Bytes& b) { b[kUpsertAt + 4] = 5; }, "unknown address family 5"},
      {"protocol", [](Bytes& b) { b[kUpsertAt + 5] = 2; }, "unknown protocol 2"},
      {"algorithm", [](Bytes& b) { b[kUpsertAt + 6] = 4; }, "unknown algorithm 4"},
      {"PROXY in", [](Bytes& b) { b[kUpsertAt + 7] = 2; }, "unknown PROXY acceptance 2"},
      {"PROXY out", [](Bytes& b) { b[kUpsertAt + 8] = 3; }, "unknown PROXY version 3"},
      {"refusal", [](Bytes& b) { b[kUpsertAt + 9] = 2; }, "unknown refusal 2"},
      {"PROXY over UDP", [](Bytes& b) { b[kUpsertAt + 5] = 1; }, "PROXY headers are for TCP"},
      {"connect timeout", [](Bytes& b) { b[kUpsertAt + 16] = b[kUpsertAt + 17] = 0; }, "connect timeout is 0"},
      {"endpoints beyond the message", [](Bytes& b) { b[kUpsertAt + 33] = 0xff; }, "truncated"},
      {"IPv4 tail", [](Bytes& b) { b[kUpsertAt + 51] = 1; }, "bytes after an IPv4 address are not zero"},
      {"tier", [](Bytes& b) { b[kFirstEndpointAt + 2] = 2; }, "unknown tier 2"},
      {"reserved in an endpoint", [](Bytes& b) { b[kFirstEndpointAt + 6] = 1; }, "reserved bytes are not zero"},
      {"weight 0", [](Bytes& b) { b[kFirstEndpointAt + 1] = 0; }, "weight is not 1 to 100"},
      {"weight 101", [](Bytes& b) { b[kFirstEndpointAt + 1] = 101; }, "weight is not 1 to 100"},
      {"endpoint port", [](Bytes& b) { b[kFirstEndpointAt + 4] = b[kFirstEndpointAt + 5] = 0; }, "endpoint port is 0"},
      {"endpoint twice", [](Bytes& b) { std::copy_n(b.begin() + kFirstEndpointAt, 24, b.begin() + kFirstEndpointAt + 24); }, "an endpoint stands twice"},
      {"removed and upserted", [](Bytes& b) { b[16] = 1; }, "a listener stands twice"},
      {"trailing", [](Bytes& b) { b.push_back(0); }, "bytes after the end"},
  };
  for (const Refused& refused : cases) {
    Bytes bytes = kGood;
    refused.spoil(bytes);
    EXPECT_EQ(problem(bytes), refused.problem) << refused.name;
  }
}

TEST(TableCodec, AnyOneByteChangedIsReadOrRefused) {
  for (std::size_t at = 0; at < kGood.size(); ++at) {
    for (int value = 0; value < 256; ++value) {
      Bytes bytes = kGood;
      bytes[at] = static_cast<std::uint8_t>(value);
      problem(bytes);
    }
  }
}

}  // namespace
}  // namespace holdfast::proxy
