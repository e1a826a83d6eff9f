#include "nft_encoder.h"

#include <gtest/gtest.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>

#include "nft_reply.h"

namespace holdfast::nft {
namespace {

using netlink::next_message;

Elements elements(std::size_t count) { return {4, 4, Bytes(count * 8), {}}; }

std::vector<nlmsghdr> headers(const Batch& batch) {
  std::vector<nlmsghdr> found;
  std::span<const std::uint8_t> rest(batch.bytes);
  while (const auto message = next_message(rest)) found.push_back(message->header);
  EXPECT_TRUE(rest.empty());
  return found;
}

TEST(NftEncoder, FramesAPlanAndAsksForTheLastAnswerAlone) {
  const Batch batch = encode({{"t", "", "", Table{}}, {"t", "c", "", Chain{}}}, 10);
  EXPECT_EQ(batch.problem, "");
  EXPECT_EQ(batch.operations, (std::vector<std::uint32_t>{0, 1}));
  const auto found = headers(batch);
  ASSERT_EQ(found.size(), 4U);
  EXPECT_EQ(found.front().nlmsg_type, NFNL_MSG_BATCH_BEGIN);
  EXPECT_EQ(found.back().nlmsg_type, NFNL_MSG_BATCH_END);
  for (std::uint32_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].nlmsg_seq, 10 + i);
    EXPECT_EQ((found[i].nlmsg_flags & NLM_F_ACK) != 0, i == 2);
  }
}

TEST(NftEncoder, SplitsElementsBelowTheLargestAttribute) {
  const Batch batch = encode({{"t", "", "m", elements(10'000)}, {"t", "", "m", elements(1)}}, 1);
  const auto found = headers(batch);
  ASSERT_EQ(found.size(), batch.operations.size() + 2);
  EXPECT_GT(batch.operations.size(), 4U);
  EXPECT_EQ(batch.operations.back(), 1U);
  EXPECT_EQ(batch.operations[batch.operations.size() - 2], 0U);
  std::size_t count = 0;
  std::span<const std::uint8_t> rest(batch.bytes);
  while (const auto message = next_message(rest)) {
    EXPECT_LT(message->header.nlmsg_len, netlink::kLargestAttribute);
    if (message->header.nlmsg_type != (NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWSETELEM)) continue;
    auto list = netlink::find_attribute(message->body.subspan(sizeof(nfgenmsg)), NFTA_SET_ELEM_LIST_ELEMENTS)->value;
    while (netlink::next_attribute(list)) ++count;
    EXPECT_TRUE(list.empty());
  }
  EXPECT_EQ(count, 10'001U);
}

TEST(NftEncoder, RefusesWhatIsNoPlan) {
  const auto problem = [](Operation operation) {
    const Batch batch = encode({{"t", "", "", Table{}}, std::move(operation)}, 1);
    EXPECT_EQ(batch.operations.back(), 1U);
    return batch.problem;
  };
  const auto rule = [&](Expression expression) { return problem({"t", "c", "", Rule{{std::move(expression)}}}); };
  EXPECT_EQ(rule({"frobnicate", {}}), "there is no expression frobnicate");
  EXPECT_EQ(rule({"cmp", {std::uint64_t{1}}}), "cmp takes 3 values, not 1");
  EXPECT_EQ(rule({"verdict", {std::uint64_t{0}, std::uint64_t{0}}}), "verdict takes 3 values, not 2");
  EXPECT_EQ(rule({"ct-direction-load", {std::uint64_t{0}, std::uint64_t{8}, std::uint64_t{256}}}), "ct-direction-load: value 3 is of another kind or too large");
  EXPECT_EQ(rule({"cmp", {std::uint64_t{8}, std::uint64_t{0}, Bytes(70'000)}}), "it takes more than the 65,535 bytes of an attribute");
  EXPECT_EQ(problem({"t", "", "m", Elements{4, 4, Bytes(9), {}}}), "the elements are not of 8 bytes each");
  EXPECT_EQ(problem({"t", "", "m", Elements{0, 0, {}, {}}}), "the elements are not of 0 bytes each");
  EXPECT_EQ(problem({"t", "", "m", Elements{4, 0, Bytes(8), {"c"}}}), "there are not as many chains as keys");
}

TEST(NftReply, ReadsNothingBeyondATornDatagram) {
  const Batch batch = encode({{"t", "", "", Table{2}}, {"t", "c", "", Chain{Hook{"nat", 0, -110}}}, {"t", "", "m", elements(2)}}, 5);
  for (std::size_t size = 0; size <= batch.bytes.size(); ++size) {
    Dump dump;
    const Bytes torn(batch.bytes.begin(), batch.bytes.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_EQ(read_dump(torn, 6, dump), [&] {
      std::span<const std::uint8_t> rest(torn);
      while (next_message(rest)) continue;
      return rest.empty();
    }());
    EXPECT_LE(dump.objects.size(), 1U);
  }
}

TEST(NftReply, KeepsTheFirstErrorOfABatch) {
  netlink::Writer writer;
  for (const std::int32_t error : {0, -17, -2}) {
    const nlmsgerr body{error, {}};
    writer.begin_message(NLMSG_ERROR, 0, static_cast<std::uint32_t>(40 - error), {reinterpret_cast<const std::uint8_t*>(&body), sizeof body});
    writer.end_message();
  }
  Answers answers;
  EXPECT_TRUE(read_answers(writer.take(), answers));
  EXPECT_EQ(answers.error, -17);
  EXPECT_EQ(answers.error_sequence, 57U);
  EXPECT_EQ(answers.done, std::vector<std::uint32_t>{40});
}

}  // namespace
}  // namespace holdfast::nft
