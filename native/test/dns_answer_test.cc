#include "dns_answer.h"

#include <gtest/gtest.h>

#include <array>
#include <set>

#include "dns_codec.h"
#include "dns_messages.h"
#include "dns_waiting.h"

namespace holdfast::dns {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const auto kNow = net::Clock::time_point(seconds(1'000));
constexpr std::uint16_t kResponseFlags = 0x8180;

std::shared_ptr<CacheEntry> entry(Bytes message, milliseconds life, milliseconds refresh) {
  auto decoded = decode_cache_entry(message, false, false);
  auto made = std::get<std::shared_ptr<CacheEntry>>(decoded);
  made->put_at = kNow;
  made->expires_at = kNow + life;
  made->refresh_at = kNow + refresh;
  return made;
}

Bytes addresses(std::string_view name, std::uint8_t count) {
  Bytes message = message_of(0, kResponseFlags, name, 1, count);
  for (std::uint8_t i = 0; i < count; ++i) add_address(message, i);
  return message;
}

class DnsAnswer : public testing::Test {
 protected:
  Outcome ask(const Bytes& query, net::Clock::duration later = {}) { return respond(query, view_, kNow + later, out_); }
  std::uint32_t ttl() const { return get32(&out_[answer_at_ + 6]); }

  View view_{1, true};
  std::array<std::uint8_t, kUdpBytes> out_;
  std::size_t answer_at_ = message_of(0, 0, "a.test", 1).size();
};

TEST_F(DnsAnswer, AnEntryIsGivenWithItsAgeUntilItExpires) {
  view_.cache.put(entry(addresses("a.test", 1), seconds(30), seconds(20)));
  EXPECT_EQ(ask(message_of(7, 0x0100, "A.Test", 1), seconds(10)).verdict, Verdict::answered);
  EXPECT_EQ(get16(&out_[0]), 7);
  EXPECT_EQ(get16(&out_[2]), kResponseFlags);
  EXPECT_EQ(out_[13], 'A');
  EXPECT_EQ(ttl(), 50u);
  EXPECT_EQ(ask(message_of(7, 0, "b.test", 1)).verdict, Verdict::handed_up);
  EXPECT_EQ(ask(message_of(7, 0, "a.test", 28)).verdict, Verdict::handed_up);
  EXPECT_EQ(ask(message_of(7, 0x0010, "a.test", 1)).verdict, Verdict::handed_up);
  EXPECT_EQ(ask(message_of(7, 0, "a.test", 1), seconds(30)).verdict, Verdict::handed_up);
  EXPECT_EQ(view_.cache.size(), 0u);
}

TEST_F(DnsAnswer, TheFirstLateOneIsToldAndNoOther) {
  view_.cache.put(entry(addresses("a.test", 1), seconds(30), seconds(20)));
  EXPECT_FALSE(ask(message_of(1, 0, "a.test", 1), seconds(19)).refresh);
  EXPECT_TRUE(ask(message_of(1, 0, "a.test", 1), seconds(20)).refresh);
  EXPECT_FALSE(ask(message_of(1, 0, "a.test", 1), seconds(21)).refresh);
}

TEST_F(DnsAnswer, AddressesChangeTheirOrderAndAreCutAtARecord) {
  view_.cache.put(entry(addresses("a.test", 40), seconds(30), seconds(30)));
  const Outcome cut = ask(message_of(1, 0, "a.test", 1));
  EXPECT_TRUE(cut.truncated);
  EXPECT_EQ(cut.size, answer_at_ + 30 * 16);
  EXPECT_EQ(get16(&out_[6]), 30);
  EXPECT_NE(get16(&out_[2]) & flag::kTruncated, 0);
  Bytes query = message_of(1, 0, "a.test", 1, 0, 1);
  add_opt(query, 4'096);
  std::set<std::uint8_t> first;
  for (int i = 0; i < 40; ++i) {
    EXPECT_FALSE(ask(query).truncated);
    first.insert(out_[answer_at_ + 15]);
  }
  EXPECT_EQ(first.size(), 40u);
}

TEST_F(DnsAnswer, TheCacheIsBounded) {
  for (std::size_t i = 0; i < Cache::kMost + 50; ++i) view_.cache.put(entry(addresses("n" + std::to_string(i) + ".test", 1), seconds(30), seconds(30)));
  EXPECT_EQ(view_.cache.size(), Cache::kMost);
  EXPECT_EQ(ask(message_of(1, 0, "n49.test", 1)).verdict, Verdict::handed_up);
  EXPECT_EQ(ask(message_of(1, 0, "n50.test", 1)).verdict, Verdict::answered);
}

TEST_F(DnsAnswer, WhatIsNoEntryIsRefused) {
  const auto problem = [](const Bytes& message) { return std::get<DecodeError>(decode_cache_entry(message, false, false)).problem; };
  EXPECT_EQ(problem({1, 2}), "not a message");
  EXPECT_EQ(problem(message_of(0, 0, "a.test", 1)), "not a response to a query");
  Bytes with_opt = message_of(0, kResponseFlags, "a.test", 1, 0, 1);
  add_opt(with_opt, 512);
  EXPECT_EQ(problem(with_opt), "it has an OPT record");
}

TEST_F(DnsAnswer, AnswersOfOthersAreCutToWhatIsTaken) {
  Bytes message = addresses("a.test", 40);
  message[11] = 1;
  add_opt(message, 1'232);
  const Cut cut = cut_to(message, 512, out_);
  EXPECT_TRUE(cut.truncated);
  EXPECT_EQ(cut.size, answer_at_ + 29 * 16 + kOptSize);
  Message read;
  EXPECT_EQ(read_message(std::span(out_).first(cut.size), read), Form::well_formed);
  EXPECT_TRUE(read.edns.has_value());
  EXPECT_EQ(cut_to(message, 1'232, out_).size, message.size());
  EXPECT_EQ(cut_to(Bytes{1, 2, 3}, 1'232, out_).size, 0u);
}

TEST(DnsWaiting, SoManyAndNoMoreEachOnce) {
  Waiting waiting;
  std::vector<std::uint64_t> handles;
  for (std::size_t i = 0; i < Waiting::kMost; ++i) handles.push_back(waiting.add({}).value());
  EXPECT_FALSE(waiting.add({}).has_value());
  EXPECT_TRUE(waiting.take(handles[5]).has_value());
  EXPECT_FALSE(waiting.take(handles[5]).has_value());
  EXPECT_NE(waiting.add({}).value(), handles[5]);
  EXPECT_FALSE(waiting.take(handles[5]).has_value());
  EXPECT_EQ(waiting.size(), Waiting::kMost);
}

}  // namespace
}  // namespace holdfast::dns
