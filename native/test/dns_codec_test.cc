#include "dns_codec.h"

#include <gtest/gtest.h>

namespace holdfast::dns {
namespace {

using Bytes = std::vector<std::uint8_t>;

/// Serial 9; the zone "z" with its server and mailbox; removes "a/b"; the group "a/c" with the name "c.z" and an address, 192.0.2.1. Written out, not built
/// by the code under test; test/adapters/dns/zone-codec.test.ts expects the encoder to make the same.
const Bytes kGood = {
    'H', 'F', 'D', 'N', 1, 0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0,  // header
    1, 'z', 0, 1, 'z', 0, 1, 'h', 1, 'z', 0,                                        // apex, server, mailbox
    1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 5, 0, 0, 0, 0,                              // its numbers
    3, 0, 'a', '/', 'b',                                                            // remove
    3, 0, 'a', '/', 'c', 1, 0,                                                      // group of one name
    1, 'c', 1, 'z', 0, 1, 0, 1, 0, 1, 0, 0, 0, 0, 0, 16, 0,                         // name, answer: type, sections, length
    0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 5, 0, 4, 192, 0, 2, 1,                           // body
};

std::string problem(const Bytes& bytes) {
  const auto decoded = decode_zone_delta(bytes);
  const auto* error = std::get_if<DecodeError>(&decoded);
  return error == nullptr ? "" : error->problem;
}

Bytes changed(std::size_t at, std::uint8_t value) {
  Bytes bytes = kGood;
  bytes.at(at) = value;
  return bytes;
}

TEST(DnsCodec, ReadsWhatIsWritten) {
  const auto decoded = decode_zone_delta(kGood);
  const auto* found = std::get_if<std::shared_ptr<const ZoneDelta>>(&decoded);
  ASSERT_NE(found, nullptr) << problem(kGood);
  const ZoneDelta& delta = **found;
  EXPECT_EQ(delta.serial, 9u);
  ASSERT_EQ(delta.apexes->size(), 1u);
  EXPECT_EQ(delta.apexes->front().mailbox, std::string("\1h\1z\0", 5));
  EXPECT_EQ(delta.remove, std::vector<std::string>{"a/b"});
  ASSERT_EQ(delta.upsert.size(), 1u);
  EXPECT_EQ(delta.upsert[0]->names[0].answers[0].body.bytes.size(), 16u);
}

TEST(DnsCodec, RefusesEveryCutAndEveryAddition) {
  for (std::size_t size = 0; size < kGood.size(); ++size) EXPECT_NE(problem(Bytes(kGood.begin(), kGood.begin() + static_cast<std::ptrdiff_t>(size))), "") << size;
  Bytes longer = kGood;
  longer.push_back(0);
  EXPECT_EQ(problem(longer), "bytes after the end");
}

TEST(DnsCodec, SaysWhatIsWrong) {
  EXPECT_EQ(problem(changed(0, 'X')), "not a zone delta");
  EXPECT_EQ(problem(changed(4, 2)), "unknown version 2");
  EXPECT_EQ(problem(changed(6, 1)), "reserved bytes are not zero");
  EXPECT_EQ(problem(changed(25, 'Z')), "a name that is not in lower case");
  EXPECT_EQ(problem(changed(51, 2)), "reverse is 0 or 1");
  EXPECT_EQ(problem(changed(kGood.size() - 16, 0x40)), "a body that is none");
  EXPECT_EQ(problem(changed(kGood.size() - 15, 200)), "a body that is none");
  EXPECT_EQ(problem(changed(kGood.size() - 26, 255)), "an answer of type ANY");
  EXPECT_EQ(problem(changed(18, 1)), "truncated");
}

TEST(DnsTable, ANameGoesWithTheGroupThatHasIt) {
  const auto group = [](std::string id, std::string name) {
    auto made = std::make_shared<ReadyGroup>();
    made->id = std::move(id);
    made->names.push_back({std::move(name), {}});
    return made;
  };
  ZoneTable table(1);
  ZoneDelta first;
  first.upsert = {group("a", "x"), group("b", "y")};
  table.apply(first);
  ZoneDelta over;
  over.upsert = {group("b", "x")};
  table.apply(over);
  EXPECT_NE(table.find("x"), nullptr);
  EXPECT_EQ(table.find("y"), nullptr);
  ZoneDelta gone;
  gone.remove = {"a"};
  table.apply(gone);
  EXPECT_NE(table.find("x"), nullptr) << "it is b's now";
  gone.remove = {"b"};
  table.apply(gone);
  EXPECT_EQ(table.size(), 0u);
}

}  // namespace
}  // namespace holdfast::dns
