#include <gtest/gtest.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "fd_passing.h"
#include "network_namespace.h"
#include "nft_socket.h"

namespace holdfast::nft {
namespace {

using test::in_namespace;

constexpr std::uint32_t kMark = 19;
constexpr std::uint32_t kVerdict = 0xffffff00;
constexpr std::uint32_t kOwnedAndPersistent = 6;

Operation table(std::uint32_t flags = 0) { return {"hf", "", "", Table{flags}}; }
Operation chain(const std::string& name) { return {"hf", name, "", Chain{}}; }
Operation rule(const std::string& chain, std::vector<Expression> expressions) { return {"hf", chain, "", Rule{std::move(expressions)}}; }
Operation counter(const std::string& name) { return {"hf", "", "", Counter{}, false, name}; }
Operation set(std::uint32_t flags, std::uint32_t data_type, std::uint32_t data_bytes) { return {"hf", "", "s", Set{flags, kMark, data_type, data_bytes, {4}, 0, 0}}; }

Bytes keys(std::initializer_list<std::uint8_t> numbers) {
  Bytes packed;
  for (const std::uint8_t number : numbers) packed.insert(packed.end(), {number, 0, 0, 0});
  return packed;
}

std::vector<Object> dump(Socket& socket, ObjectKind kind, const std::string& set = "") {
  std::vector<Object> objects;
  const Outcome outcome = socket.dump(kind, "hf", set, objects);
  EXPECT_EQ(outcome.error, 0) << outcome.text;
  return objects;
}

/// In a namespace with a socket.
void with_socket(const std::function<void(Socket&)>& body) {
  in_namespace([&] {
    Socket socket;
    ASSERT_EQ(socket.open(), 0);
    body(socket);
  });
}

void expect_done(const Outcome& outcome) { EXPECT_EQ(outcome.error, 0) << outcome.text << " at " << outcome.operation; }

TEST(NftRuleset, RemovesOneRuleByItsHandleAndAllByAFlush) {
  with_socket([](Socket& socket) {
    expect_done(socket.apply({table(), chain("c"), rule("c", {{"counter", {}}}), rule("c", {{"notrack", {}}}), rule("c", {{"counter", {}}})}));
    const auto rules = dump(socket, ObjectKind::rule);
    ASSERT_EQ(rules.size(), 3U);
    expect_done(socket.apply({{"hf", "c", "", Remove{rules[1].handle}}}));
    const auto left = dump(socket, ObjectKind::rule);
    ASSERT_EQ(left.size(), 2U);
    EXPECT_EQ(left[0].handle, rules[0].handle);
    EXPECT_EQ(left[1].handle, rules[2].handle);
    EXPECT_EQ(socket.apply({{"hf", "c", "", Remove{rules[1].handle}}}).error, -ENOENT);
    // Exchanged at once: nobody sees the chain empty.
    expect_done(socket.apply({{"hf", "c", "", Flush{}}, rule("c", {{"notrack", {}}})}));
    EXPECT_EQ(dump(socket, ObjectKind::rule).size(), 1U);
  });
}

TEST(NftRuleset, FlushesASetAndExchangesElements) {
  with_socket([](Socket& socket) {
    Bytes old = keys({1, 10, 2, 20, 3, 30});
    expect_done(socket.apply({table(), set(NFT_SET_MAP, kMark, 4), {"hf", "", "s", Elements{4, 4, old, {}}}}));
    const Operation gone{"hf", "", "s", Elements{4, 0, keys({2}), {}}, true};
    EXPECT_EQ(socket.apply({{"hf", "", "s", Elements{4, 4, keys({2, 21}), {}}}}).error, -EEXIST);
    expect_done(socket.apply({gone, {"hf", "", "s", Elements{4, 4, keys({2, 21}), {}}}}));
    auto found = dump(socket, ObjectKind::element, "s");
    std::sort(found.begin(), found.end(), [](const Object& a, const Object& b) { return a.key < b.key; });
    ASSERT_EQ(found.size(), 3U);
    EXPECT_EQ(found[1].data, keys({21}));
    expect_done(socket.apply({{"hf", "", "s", Flush{}}, {"hf", "", "s", Elements{4, 4, keys({9, 90}), {}}}}));
    EXPECT_EQ(dump(socket, ObjectKind::element, "s").size(), 1U);
  });
}

TEST(NftRuleset, GivesElementsATime) {
  with_socket([](Socket& socket) {
    Elements brief{4, 0, keys({1, 2}), {}};
    brief.timeout_ms = 60'000;
    expect_done(socket.apply({table(), set(NFT_SET_TIMEOUT, 0, 0), {"hf", "", "s", brief}, {"hf", "", "s", Elements{4, 0, keys({3}), {}}}}));
    std::size_t timed = 0;
    for (const Object& element : dump(socket, ObjectKind::element, "s")) {
      EXPECT_LE(element.expires_ms, 60'000U);
      timed += element.expires_ms > 50'000 ? 1 : 0;
    }
    EXPECT_EQ(timed, 2U);
  });
}

TEST(NftRuleset, JumpsAndGoesByAVerdictMap) {
  with_socket([](Socket& socket) {
    Elements jumps{4, 0, keys({1}), {"a"}};
    jumps.jump = true;
    expect_done(socket.apply({table(), chain("a"), chain("b"), set(NFT_SET_MAP, kVerdict, 16), {"hf", "", "s", jumps}, {"hf", "", "s", Elements{4, 0, keys({2}), {"b"}}}}));
    auto found = dump(socket, ObjectKind::element, "s");
    std::sort(found.begin(), found.end(), [](const Object& a, const Object& b) { return a.key < b.key; });
    ASSERT_EQ(found.size(), 2U);
    EXPECT_EQ(found[0].chain + found[1].chain, "ab");
    // A chain that is still gone to stays.
    EXPECT_EQ(socket.apply({{"hf", "a", "", Remove{}}}).error, -EBUSY);
  });
}

TEST(NftRuleset, KeepsNamedCountersWhileRulesComeAndGo) {
  with_socket([](Socket& socket) {
    const Expression counts{"object", {std::uint64_t{NFT_OBJECT_COUNTER}, std::string("denied")}};
    expect_done(socket.apply({table(), counter("denied"), counter("other"), chain("c"), rule("c", {counts})}));
    expect_done(socket.apply({counter("denied"), {"hf", "c", "", Flush{}}, rule("c", {counts})}));
    const auto found = dump(socket, ObjectKind::counter);
    ASSERT_EQ(found.size(), 2U);
    EXPECT_TRUE(found[0].counter == "denied" || found[1].counter == "denied");
    EXPECT_EQ(found[0].packets, 0U);
    EXPECT_EQ(socket.apply({{"hf", "", "", Remove{}, false, "denied"}}).error, -EBUSY);
    expect_done(socket.apply({{"hf", "c", "", Flush{}}, {"hf", "", "", Remove{}, false, "denied"}}));
    EXPECT_EQ(dump(socket, ObjectKind::counter).size(), 1U);
  });
}

TEST(NftRuleset, LogsWithALevelAndToAGroup) {
  with_socket([](Socket& socket) {
    const Expression rate{"limit", {std::uint64_t{5}, std::uint64_t{1}, std::uint64_t{5}, std::uint64_t{NFT_LIMIT_PKTS}, std::uint64_t{0}}};
    const Expression level{"log-level", {std::uint64_t{NFT_LOGLEVEL_INFO}, std::string("hf-deny ")}};
    const Expression group{"log-group", {std::uint64_t{7}, std::string("hf-deny "), std::uint64_t{64}, std::uint64_t{1}}};
    expect_done(socket.apply({table(), chain("c"), rule("c", {rate, level}), rule("c", {rate, group})}));
    EXPECT_EQ(dump(socket, ObjectKind::rule).size(), 2U);
    const Outcome wrong = socket.apply({rule("c", {{"log-group", {std::uint64_t{65'536}, std::string("x"), std::uint64_t{0}, std::uint64_t{0}}}})});
    EXPECT_EQ(wrong.text, "log-group: value 1 is of another kind or too large");
  });
}

TEST(NftRuleset, BindsAChainToADevice) {
  with_socket([](Socket& socket) {
    const Operation ingress{"hf", "spoof", "", Chain{Hook{"filter", NF_INET_INGRESS, 0, "lo"}}};
    expect_done(socket.apply({table(), ingress, rule("spoof", {{"counter", {}}})}));
    const auto chains = dump(socket, ObjectKind::chain);
    ASSERT_EQ(chains.size(), 1U);
    EXPECT_EQ(chains[0].hook, static_cast<std::uint32_t>(NF_INET_INGRESS));
    EXPECT_EQ(chains[0].device, "lo");
    const Operation nowhere{"hf", "none", "", Chain{Hook{"filter", NF_INET_INGRESS, 0, "hf-none"}}};
    const Outcome early = socket.apply({nowhere});
    // Linux 6.16 and later wait for the device.
    EXPECT_TRUE(early.error == 0 || (early.error == -ENOENT && early.operation == 0)) << early.error;
  });
}

TEST(NftRuleset, RefusesAPlanForAnotherGeneration) {
  with_socket([](Socket& socket) {
    std::uint32_t generation = 0, after = 0;
    expect_done(socket.generation(generation));
    expect_done(socket.apply({table()}, generation));
    const Outcome late = socket.apply({chain("c")}, generation);
    EXPECT_EQ(late.error, -ERESTART);
    EXPECT_EQ(late.operation, -1);
    EXPECT_EQ(late.text, "the ruleset is not of the generation that this was planned for");
    expect_done(socket.generation(after));
    EXPECT_EQ(after, generation + 1);
    expect_done(socket.apply({chain("c")}, after));
  });
}

TEST(NftRuleset, SaysWhyATableCannotBeOwned) {
  with_socket([](Socket& socket) {
    bool known = false;
    expect_done(socket.knows_flags(1 << 30, known));
    EXPECT_FALSE(known);
    expect_done(socket.knows_flags(kOwnedAndPersistent, known));
    EXPECT_TRUE(dump(socket, ObjectKind::table).empty());
    expect_done(socket.apply({table()}));
    const Outcome unowned = socket.apply({table(kOwnedAndPersistent)});
    EXPECT_EQ(unowned.error, -EOPNOTSUPP);
    EXPECT_EQ(unowned.text, known ? "the table hf was made without an owner: it can be owned only when it is removed and made again"
                                  : "the kernel does not know these flags of a table (persist: Linux 6.9)");
    const Outcome unknown = socket.apply({{"other", "", "", Table{1 << 30}}});
    EXPECT_EQ(unknown.text, "the kernel does not know these flags of a table (persist: Linux 6.9)");
    if (known) expect_done(socket.apply({{"hf", "", "", Remove{}}, table(kOwnedAndPersistent)}));
  });
}

/// What the process does that gets the socket: 0 when it could change the table that the socket owns.
int change_by(int channel) {
  Parcel parcel;
  if (receive_parcel(channel, parcel, std::chrono::seconds(5)) != 0 || parcel.text != "table" || parcel.fds.size() != 1) return 1;
  Socket socket;
  if (socket.adopt(std::move(parcel.fds.front())) != 0) return 2;
  return socket.apply({chain("of-the-next")}).error == 0 ? 0 : 3;
}

TEST(NftRuleset, PassesTheOwningSocketToAnotherProcess) {
  with_socket([](Socket& socket) {
    bool known = false;
    expect_done(socket.knows_flags(kOwnedAndPersistent, known));
    if (!known) GTEST_SKIP() << "needs Linux 6.9";
    expect_done(socket.apply({table(kOwnedAndPersistent)}));
    Channel channel;
    ASSERT_EQ(open_channel(channel), 0);
    const pid_t next = ::fork();
    if (next == 0) ::_exit(change_by(channel.theirs.get()));
    const int fd = socket.fd();
    ASSERT_EQ(send_parcel(channel.ours.get(), "table", {&fd, 1}, std::chrono::seconds(5)), 0);
    int status = -1;
    ASSERT_EQ(::waitpid(next, &status, 0), next);
    EXPECT_EQ(status, 0);
    ASSERT_EQ(dump(socket, ObjectKind::chain).size(), 1U);
    // It is one socket with two holders: the owner is still there after the other has ended.
    EXPECT_EQ(dump(socket, ObjectKind::table).front().owner, socket.port());
  });
}

TEST(NftRuleset, TakesNoOtherSocketForItsOwn) {
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  net::UniqueFd other(pair[1]);
  Socket socket;
  EXPECT_EQ(socket.adopt(net::UniqueFd(pair[0])), -EPROTOTYPE);
  Socket nothing;
  EXPECT_EQ(nothing.adopt(net::UniqueFd(::eventfd(0, EFD_CLOEXEC))), -ENOTSOCK);
}

}  // namespace
}  // namespace holdfast::nft
