#include "nft_watcher.h"

#include <gtest/gtest.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <unistd.h>

#include <condition_variable>
#include <map>

#include "network_namespace.h"
#include "nft_socket.h"

namespace holdfast::nft {
namespace {

using namespace std::chrono_literals;
using test::in_namespace;

/// What a watcher tells, waited for.
class Heard {
 public:
  int start(std::uint32_t own_port) { return watcher.start(own_port); }

  /// The next changes within a second, else none.
  Changes next() {
    std::unique_lock lock(mutex_);
    if (!told_.wait_for(lock, 1s, [this] { return notices_ > 0; })) return {};
    notices_ = 0;
    lock.unlock();
    return watcher.take();
  }

  bool silent() {
    std::unique_lock lock(mutex_);
    return !told_.wait_for(lock, 100ms, [this] { return notices_ > 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable told_;
  int notices_ = 0;

 public:
  Watcher watcher{[this] {
    const std::lock_guard lock(mutex_);
    ++notices_;
    told_.notify_one();
  }};
};

Operation table(const std::string& name) { return {name, "", "", Table{}}; }
Operation map(const std::string& name) { return {name, "", "m", Set{NFT_SET_MAP, 19, 19, 4, {4}, 0, 0}}; }

Operation numbers(const std::string& name, std::uint32_t count) {
  Elements elements{4, 4, Bytes(std::size_t{count} * 8), {}};
  for (std::uint32_t i = 0; i < count; ++i) std::memcpy(elements.packed.data() + std::size_t{i} * 8, &i, 4);
  return {name, "", "m", std::move(elements)};
}

TEST(NftWatcher, TellsWhoChangedWhatButNotWhatWeDid) {
  in_namespace([] {
    Socket own, other;
    Heard heard;
    ASSERT_EQ(own.open(), 0);
    ASSERT_EQ(other.open(), 0);
    ASSERT_NE(own.port(), other.port());
    ASSERT_EQ(heard.start(own.port()), 0);
    ASSERT_EQ(own.apply({table("ours"), map("ours"), numbers("ours", 100)}).error, 0);
    EXPECT_TRUE(heard.silent());
    ASSERT_EQ(other.apply({numbers("ours", 200), table("theirs")}).error, 0);
    const Changes changes = heard.next();
    EXPECT_FALSE(changes.overrun);
    ASSERT_EQ(changes.tables.size(), 2U);
    EXPECT_EQ(changes.tables[0].table + " " + changes.tables[1].table, "ours theirs");
    for (const Change& change : changes.tables) {
      EXPECT_EQ(change.family, 1U);
      EXPECT_EQ(change.port, other.port());
      EXPECT_EQ(change.process, static_cast<std::uint32_t>(::gettid()));
      EXPECT_EQ(change.command.substr(0, 13), "holdfast_test");
    }
  });
}

TEST(NftWatcher, HearsNothingWhilePaused) {
  in_namespace([] {
    Socket other;
    Heard heard;
    ASSERT_EQ(other.open(), 0);
    ASSERT_EQ(heard.start(0), 0);
    ASSERT_EQ(heard.watcher.pause(), 0);
    ASSERT_EQ(other.apply({table("a")}).error, 0);
    EXPECT_TRUE(heard.silent());
    ASSERT_EQ(heard.watcher.resume(), 0);
    ASSERT_EQ(other.apply({table("b")}).error, 0);
    const Changes changes = heard.next();
    ASSERT_EQ(changes.tables.size(), 1U);
    EXPECT_EQ(changes.tables[0].table, "b");
  });
}

TEST(NftWatcher, KeepsACrowdOfEventsSmall) {
  in_namespace([] {
    Socket other;
    Heard heard;
    ASSERT_EQ(other.open(), 0);
    ASSERT_EQ(heard.start(0), 0);
    ASSERT_EQ(other.apply({table("t"), map("t"), numbers("t", 20'000)}).error, 0);
    Plan plan;
    for (std::size_t i = 0; i <= kMostChanges; ++i) plan.push_back(table("t" + std::to_string(i)));
    ASSERT_EQ(other.apply(plan).error, 0);
    std::map<std::string, int> seen;
    bool overrun = false;
    while (!overrun) {
      const Changes changes = heard.next();
      ASSERT_TRUE(!changes.tables.empty() || changes.overrun);
      EXPECT_LE(changes.tables.size(), kMostChanges);
      for (const Change& change : changes.tables) ++seen[change.table];
      overrun = changes.overrun || seen.count("t" + std::to_string(kMostChanges)) == 1;
    }
    EXPECT_EQ(seen.count("t"), 1U);
  });
}

TEST(NftWatcher, EndsWhileEventsCome) {
  in_namespace([] {
    Socket other;
    ASSERT_EQ(other.open(), 0);
    for (int i = 0; i < 20; ++i) {
      Watcher watcher([] {});
      ASSERT_EQ(watcher.start(0), 0);
      ASSERT_EQ(other.apply({table("t"), map("t"), numbers("t", 100), {"t", "", "", Remove{}}}).error, 0);
      watcher.stop();
    }
  });
}

TEST(NftEvents, ReadNothingBeyondATornDatagram) {
  netlink::Writer writer;
  const nfgenmsg header{1, NFNETLINK_V0, 0};
  writer.begin_message(NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWTABLE, 0, 1, {reinterpret_cast<const std::uint8_t*>(&header), sizeof header});
  writer.put_string(NFTA_TABLE_NAME, "t");
  writer.end_message();
  const Bytes whole = writer.take();
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    Changes changes;
    EXPECT_EQ(read_changes(std::span(whole).first(size), 7, changes), size == 0 || size == whole.size());
    EXPECT_EQ(changes.tables.size(), size == whole.size() ? 1U : 0U);
  }
}

}  // namespace
}  // namespace holdfast::nft
