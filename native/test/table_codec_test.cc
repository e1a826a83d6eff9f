#include "table_codec.h"

#include <gtest/gtest.h>

#include <functional>

namespace holdfast::proxy {
namespace {

using Bytes = std::vector<std::uint8_t>;

/// Removes 7; upserts 1: 10.0.0.1:80, round-robin, endpoints 10.0.0.2:8080 weight 3 and [::1]:81 weight 1. Written out, not built by the code
/// under test; test/adapters/dataplane/table-codec.test.ts expects the encoder to make the same.
const Bytes kGood = {
    'H', 'F', 'T', 'D', 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0,            // header
    7, 0, 0, 0,                                                        // remove
    1, 0, 0, 0, 4, 1, 80, 0, 0x30, 0x75, 0, 0, 0xb8, 0x0b, 0, 0,       // id, family, algorithm, port, 30000 ms, 3000 ms
    2, 0, 0, 0, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,       // endpoints, address
    4, 3, 0x90, 0x1f, 10, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  //
    6, 1, 81, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
};
constexpr std::size_t kUpsertAt = 20;
constexpr std::size_t kFirstEndpointAt = 56;

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
  ListenerConfig wanted{1, {net::Family::ipv4, 80, {10, 0, 0, 1}}, Algorithm::round_robin, std::chrono::seconds(30), std::chrono::seconds(3), {}};
  wanted.endpoints.push_back({{net::Family::ipv4, 8080, {10, 0, 0, 2}}, 3});
  wanted.endpoints.push_back({{net::Family::ipv6, 81, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}}, 1});
  ASSERT_EQ(delta->upsert.size(), 1U);
  EXPECT_EQ(delta->upsert[0], wanted);
}

TEST(TableCodec, AnEmptyDeltaIsOne) {
  EXPECT_EQ(problem({'H', 'F', 'T', 'D', 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}), "");
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
      {"version", [](Bytes& b) { b[4] = 2; }, "unknown version 2"},
      {"reserved", [](Bytes& b) { b[6] = 1; }, "reserved bytes are not zero"},
      {"removes beyond the message", [](Bytes& b) { b[11] = 0xff; }, "truncated"},
      {"upserts beyond the message", [](Bytes& b) { b[15] = 0xff; }, "truncated"},
      {"family", [](Bytes& b) { b[kUpsertAt + 4] = 5; }, "unknown address family 5"},
      {"algorithm", [](Bytes& b) { b[kUpsertAt + 5] = 2; }, "unknown algorithm 2"},
      {"connect timeout", [](Bytes& b) { b[kUpsertAt + 12] = b[kUpsertAt + 13] = 0; }, "connect timeout is 0"},
      {"endpoints beyond the message", [](Bytes& b) { b[kUpsertAt + 17] = 0xff; }, "truncated"},
      {"IPv4 tail", [](Bytes& b) { b[kUpsertAt + 35] = 1; }, "bytes after an IPv4 address are not zero"},
      {"weight 0", [](Bytes& b) { b[kFirstEndpointAt + 1] = 0; }, "weight is not 1 to 100"},
      {"weight 101", [](Bytes& b) { b[kFirstEndpointAt + 1] = 101; }, "weight is not 1 to 100"},
      {"endpoint port", [](Bytes& b) { b[kFirstEndpointAt + 2] = b[kFirstEndpointAt + 3] = 0; }, "endpoint port is 0"},
      {"endpoint twice", [](Bytes& b) { std::copy_n(b.begin() + kFirstEndpointAt, 20, b.begin() + kFirstEndpointAt + 20); }, "an endpoint stands twice"},
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
