#include "nft_socket.h"

#include <gtest/gtest.h>
#include <linux/netfilter/nf_tables.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>

#include "network_namespace.h"

namespace holdfast::nft {
namespace {

constexpr std::uint32_t kOwnedAndPersistent = 6;
constexpr std::uint32_t kMark = 19;

using test::in_namespace;

Operation table(std::uint32_t flags = 0) { return {"hf", "", "", Table{flags}}; }
Operation map() { return {"hf", "", "m", Set{NFT_SET_MAP, kMark, kMark, 4, {4}, 0, 0}}; }

Operation numbers(std::uint32_t count, std::uint32_t data = 7) {
  Elements elements{4, 4, {}, {}};
  for (std::uint32_t i = 0; i < count; ++i) {
    for (const std::uint32_t number : {i, data}) {
      for (int byte = 0; byte < 4; ++byte) elements.packed.push_back(static_cast<std::uint8_t>(number >> (8 * byte)));
    }
  }
  return {"hf", "", "m", std::move(elements)};
}

std::size_t count(Socket& socket, ObjectKind kind, const std::string& set = "") {
  std::vector<Object> objects;
  const Outcome outcome = socket.dump(kind, "hf", set, objects);
  EXPECT_EQ(outcome.error, 0) << outcome.text;
  return objects.size();
}

TEST(NftSocket, DumpsWhatItMade) {
  in_namespace([] {
    Socket socket;
    ASSERT_EQ(socket.open(), 0);
    std::uint32_t before = 0, after = 0;
    ASSERT_EQ(socket.generation(before).error, 0);
    const Rule rule{{{"meta-load", {std::uint64_t{NFT_META_MARK}, std::uint64_t{8}}}, {"lookup", {std::string("m"), std::uint64_t{8}, std::uint64_t{8}}}, {"counter", {}}}};
    const Outcome made = socket.apply({table(), {"hf", "c", "", Chain{Hook{"filter", 1, -10}}}, map(), numbers(2), {"hf", "c", "", rule}});
    ASSERT_EQ(made.error, 0) << made.text << " at " << made.operation;
    ASSERT_EQ(socket.generation(after).error, 0);
    EXPECT_GT(after, before);
    std::vector<Object> chains, found;
    ASSERT_EQ(socket.dump(ObjectKind::chain, "", "", chains).error, 0);
    ASSERT_EQ(chains.size(), 1U);
    EXPECT_EQ(chains[0].table + " " + chains[0].chain + " " + chains[0].type, "hf c filter");
    EXPECT_EQ(chains[0].hook, 1U);
    EXPECT_EQ(chains[0].priority, -10);
    EXPECT_EQ(chains[0].policy, 1U);
    ASSERT_EQ(socket.dump(ObjectKind::element, "hf", "m", found).error, 0);
    ASSERT_EQ(found.size(), 2U);
    EXPECT_EQ(found[0].data, (Bytes{7, 0, 0, 0}));
    EXPECT_EQ(count(socket, ObjectKind::table), 1U);
    EXPECT_EQ(count(socket, ObjectKind::rule), 1U);
    EXPECT_EQ(count(socket, ObjectKind::set), 1U);
    EXPECT_EQ(socket.apply({{"hf", "", "", Remove{}}}).error, 0);
    EXPECT_EQ(count(socket, ObjectKind::table), 0U);
    EXPECT_EQ(socket.apply({}).error, 0);
  });
}

TEST(NftSocket, NamesTheOperationThatFailedAndDoesNothing) {
  in_namespace([] {
    Socket socket;
    ASSERT_EQ(socket.open(), 0);
    // 20,000 elements are five messages or more: the operation is named, not the message.
    const Outcome failed = socket.apply({table(), map(), numbers(20'000), {"hf", "none", "", Rule{}}, {"hf", "", "gone", Remove{}}});
    EXPECT_EQ(failed.error, -ENOENT);
    EXPECT_EQ(failed.operation, 3);
    EXPECT_EQ(count(socket, ObjectKind::table), 0U);
    ASSERT_EQ(socket.apply({table(), map(), numbers(3)}).error, 0);
    const Outcome exists = socket.apply({numbers(3, 8)});
    EXPECT_EQ(exists.error, -EEXIST);
    EXPECT_EQ(exists.operation, 0);
    EXPECT_EQ(socket.apply({numbers(3, 7)}).error, 0);
    Operation keys{"hf", "", "m", Elements{4, 0, Bytes{1, 0, 0, 0}, {}}, true};
    EXPECT_EQ(socket.apply({keys}).error, 0);
    EXPECT_EQ(count(socket, ObjectKind::element, "m"), 2U);
  });
}

TEST(NftSocket, TakesABatchOfMoreThanItsBuffer) {
  in_namespace([] {
    Socket socket;
    ASSERT_EQ(socket.open(), 0);
    int size = 64 * 1024;
    ASSERT_EQ(::setsockopt(socket.fd(), SOL_SOCKET, SO_SNDBUF, &size, sizeof size), 0);
    // 28 bytes of message for each: 560 KB and the headers, against the 128 KiB that the kernel makes of 64.
    constexpr std::uint32_t kMany = 20'000;
    const Outcome made = socket.apply({table(), map(), numbers(kMany)});
    ASSERT_EQ(made.error, 0) << made.text;
    EXPECT_EQ(count(socket, ObjectKind::element, "m"), kMany);
    socklen_t length = sizeof size;
    ASSERT_EQ(::getsockopt(socket.fd(), SOL_SOCKET, SO_SNDBUF, &size, &length), 0);
    EXPECT_EQ(size, 2 * 8 * 1024 * 1024);
    EXPECT_EQ(socket.apply({{"hf", "", "", Remove{}}}).error, 0);
  });
}

TEST(NftSocket, SurvivesMoreErrorsThanFit) {
  in_namespace([] {
    Socket socket;
    ASSERT_EQ(socket.open(), 0);
    Plan plan{table()};
    for (int i = 0; i < 100'000; ++i) plan.push_back({"hf", "", "gone", Remove{}});
    const Outcome failed = socket.apply(plan);
    EXPECT_TRUE(failed.error == -ENOENT || failed.error == -ENOBUFS || failed.error == -ENOMEM) << failed.error;
    EXPECT_EQ(count(socket, ObjectKind::table), 0U);
    EXPECT_EQ(socket.apply({table()}).error, 0);
    EXPECT_EQ(count(socket, ObjectKind::table), 1U);
  });
}

TEST(NftSocket, OwnsItsTableAgainstOthersAndLeavesItToTheNext) {
  in_namespace([] {
    auto first = std::make_unique<Socket>();
    Socket second;
    ASSERT_EQ(first->open(), 0);
    ASSERT_EQ(second.open(), 0);
    if (const Outcome made = first->apply({table(kOwnedAndPersistent), map()}); made.error == -EOPNOTSUPP) GTEST_SKIP() << "needs Linux 6.9";
    const Outcome denied = second.apply({{"hf", "", "", Remove{}}});
    EXPECT_EQ(denied.error, -EPERM);
    EXPECT_EQ(denied.text, "the table hf is owned by another process (netlink port " + std::to_string(first->port()) + ")");
    first.reset();
    EXPECT_EQ(count(second, ObjectKind::set), 1U);
    const Outcome adopted = second.apply({table(kOwnedAndPersistent), numbers(1)});
    EXPECT_EQ(adopted.error, 0) << adopted.text;
    Socket third;
    ASSERT_EQ(third.open(), 0);
    EXPECT_EQ(third.apply({table(kOwnedAndPersistent)}).error, -EPERM);
  });
}

}  // namespace
}  // namespace holdfast::nft
