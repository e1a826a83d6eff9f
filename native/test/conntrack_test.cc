#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <netinet/in.h>

#include <chrono>
#include <cstdio>

#include "conntrack_filter.h"
#include "conntrack_message.h"
#include "conntrack_row.h"
#include "conntrack_table.h"
#include "network_namespace.h"

namespace holdfast::conntrack {
namespace {

using net::Family;
using net::SocketAddress;
using test::in_namespace;

constexpr std::uint32_t kCut = 0x40000000;

SocketAddress v4(std::uint32_t number, std::uint16_t port) {
  SocketAddress address{Family::ipv4, port, {}};
  const std::uint32_t wire = htonl(number);
  std::memcpy(address.bytes.data(), &wire, 4);
  return address;
}

SocketAddress v6(std::uint32_t number, std::uint16_t port) {
  SocketAddress address{Family::ipv6, port, {0xfd}};
  const std::uint32_t wire = htonl(number);
  std::memcpy(address.bytes.data() + 12, &wire, 4);
  return address;
}

/// Client `i` of 10.192.0.2:80, answered by one of ten back-ends 10.1.0.0 … 10.1.0.9.
Entry flow(std::uint32_t i, std::uint8_t protocol = IPPROTO_UDP) {
  const SocketAddress client = v4(0x0a020000 + (i >> 14), static_cast<std::uint16_t>(1 + (i & 0x3fff)));
  Entry entry;
  entry.protocol = protocol;
  entry.original = {client, v4(0x0ac00002, 80)};
  entry.reply = {v4(0x0a010000 + i % 10, 8080), client};
  return entry;
}

Entry flow6(std::uint32_t i) {
  Entry entry;
  entry.protocol = IPPROTO_UDP;
  entry.original = {v6(0x10000 + i, 4000), v6(2, 80)};
  entry.reply = {v6(0x20000 + i % 10, 8080), v6(0x10000 + i, 4000)};
  return entry;
}

void put_tuple(netlink::Writer& writer, std::uint16_t type, const Tuple& tuple, std::uint8_t protocol) {
  const bool is_v4 = tuple.source.family == Family::ipv4;
  const auto bytes = [&](const SocketAddress& address) { return std::span<const std::uint8_t>(address.bytes).first(is_v4 ? 4 : 16); };
  const auto nest = writer.begin_nest(type);
  const auto addresses = writer.begin_nest(CTA_TUPLE_IP);
  writer.put(is_v4 ? CTA_IP_V4_SRC : CTA_IP_V6_SRC, bytes(tuple.source));
  writer.put(is_v4 ? CTA_IP_V4_DST : CTA_IP_V6_DST, bytes(tuple.destination));
  writer.end_nest(addresses);
  const auto ports = writer.begin_nest(CTA_TUPLE_PROTO);
  writer.put_u8(CTA_PROTO_NUM, protocol);
  writer.put_u16(CTA_PROTO_SRC_PORT, tuple.source.port);
  writer.put_u16(CTA_PROTO_DST_PORT, tuple.destination.port);
  writer.end_nest(ports);
  writer.end_nest(nest);
}

void put_new(netlink::Writer& writer, const Entry& entry, std::uint16_t flags, std::uint32_t sequence) {
  const nfgenmsg header{static_cast<std::uint8_t>(entry.original.source.family == Family::ipv4 ? AF_INET : AF_INET6), NFNETLINK_V0, 0};
  writer.begin_message(NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_NEW, static_cast<std::uint16_t>(NLM_F_REQUEST | NLM_F_CREATE | NLM_F_EXCL | flags),
                       sequence, {reinterpret_cast<const std::uint8_t*>(&header), sizeof header});
  put_tuple(writer, CTA_TUPLE_ORIG, entry.original, entry.protocol);
  put_tuple(writer, CTA_TUPLE_REPLY, entry.reply, entry.protocol);
  writer.put_u32(CTA_TIMEOUT, 600);
  writer.put_u32(CTA_MARK, entry.mark);
  writer.end_message();
}

/// Entries as packets would make them. The kernel answers what fails, and the last.
void create(const std::vector<Entry>& entries) {
  netlink::Socket socket;
  ASSERT_EQ(socket.open(), 0);
  netlink::Writer writer;
  for (std::uint32_t i = 0; i < entries.size(); ++i) put_new(writer, entries[i], i + 1 == entries.size() ? NLM_F_ACK : 0, i);
  ASSERT_EQ(socket.send(writer.take()), 0);
  std::span<const std::uint8_t> datagram;
  for (bool ended = false; !ended;) {
    ASSERT_EQ(socket.receive(datagram, 0), 0);
    while (const auto message = netlink::next_message(datagram)) {
      const auto answer = read_answer(*message);
      ASSERT_TRUE(answer);
      ASSERT_EQ(answer->error, 0) << answer->sequence;
      ended = ended || answer->sequence + 1 == entries.size();
    }
  }
}

std::vector<Entry> listed(Table& table, const Filter& filter = {}) {
  Bytes rows;
  EXPECT_EQ(table.list(filter, rows), 0);
  return read_rows(rows).value_or(std::vector<Entry>{});
}

std::vector<Entry> flows(std::uint32_t count) {
  std::vector<Entry> entries;
  for (std::uint32_t i = 0; i < count; ++i) entries.push_back(flow(i));
  return entries;
}

TEST(Conntrack, ListsWhatIsThereWithBothTuples) {
  in_namespace([] {
    Table table;
    ASSERT_EQ(table.open(), 0);
    EXPECT_TRUE(listed(table).empty());
    Entry marked = flow(0);
    marked.mark = 0x20000001;
    create({marked, flow6(1)});
    auto found = listed(table);
    ASSERT_EQ(found.size(), 2U);
    std::sort(found.begin(), found.end(), [](const Entry& a, const Entry& b) { return a.mark > b.mark; });
    EXPECT_EQ(found[0].mark, marked.mark);
    EXPECT_EQ(found[0].original, marked.original);
    EXPECT_EQ(found[0].reply, marked.reply);
    EXPECT_EQ(found[0].protocol, IPPROTO_UDP);
    EXPECT_NE(found[0].id, 0U);
    EXPECT_NEAR(found[0].timeout, 600, 5);
    EXPECT_EQ(found[1].original, flow6(1).original);
  });
}

struct Row {
  const char* name;
  Filter filter;
  std::size_t wanted;
  /// What the kernel gives, before it is matched once more.
  std::uint32_t received;
};

TEST(Conntrack, FiltersInTheKernelAndHere) {
  in_namespace([] {
    std::vector<Entry> entries = flows(100);
    for (std::uint32_t i = 0; i < 100; ++i) entries[i].mark = i < 30 ? kCut | 5 : 5;
    for (std::uint32_t i = 0; i < 20; ++i) entries.push_back(flow6(i));
    create(entries);
    const SocketAddress back_end = v4(0x0a010003, 8080), vip = v4(0x0ac00002, 80), any_port = v4(0x0a010004, 0);
    const Row rows[] = {
        {"all", {}, 120, 120},
        {"a family", {.family = Family::ipv6}, 20, 20},
        {"a mark", {.mark = kCut, .mark_mask = kCut}, 30, 30},
        {"a mark that is not there", {.mark = 0, .mark_mask = kCut}, 90, 90},
        {"a protocol", {.family = Family::ipv4, .protocol = IPPROTO_TCP}, 0, 0},
        {"one back-end", {.any_of = {{Part::backend, 0, back_end}}}, 10, 10},
        {"one back-end of IPv6", {.any_of = {{Part::backend, IPPROTO_UDP, v6(0x20003, 8080)}}}, 2, 20},
        {"another port of it", {.any_of = {{Part::backend, 0, v4(0x0a010003, 81)}}}, 0, 10},
        {"any port", {.any_of = {{Part::backend, 0, any_port}}}, 10, 10},
        {"a VIP by TCP", {.any_of = {{Part::destination, IPPROTO_TCP, vip}}}, 0, 100},
        {"a VIP by UDP", {.any_of = {{Part::destination, IPPROTO_UDP, vip}}}, 100, 100},
        {"a client", {.any_of = {{Part::source, 0, flow(7).original.source}}}, 1, 100},
        {"one of two", {.any_of = {{Part::backend, 0, back_end}, {Part::backend, 0, any_port}}}, 20, 120},
        {"one of two with a mark", {.mark = kCut, .mark_mask = kCut, .any_of = {{Part::backend, 0, back_end}, {Part::backend, 0, any_port}}}, 6, 30},
        {"a zone", {.zone = 7}, 0, 120},
    };
    for (const Row& row : rows) {
      Table table;
      ASSERT_EQ(table.open(), 0);
      EXPECT_EQ(listed(table, row.filter).size(), row.wanted) << row.name;
      EXPECT_EQ(table.received(), row.received) << row.name;
    }
  });
}

/// The same client and service, and another back-end: what a new flow of the client is after the old one is gone.
Entry moved(Entry entry) {
  entry.reply.source = v4(0x0a01ffff, 8080);
  return entry;
}

TEST(Conntrack, RemovesNoneThatTookThePlace) {
  in_namespace([] {
    create(flows(4));
    Table table;
    ASSERT_EQ(table.open(), 0);
    std::vector<Entry> found = listed(table);
    ASSERT_EQ(found.size(), 4U);
    ASSERT_EQ(table.remove({found[2]}).done, 1U);
    create({moved(found[2])});
    Entry other = found[0];
    ++other.id;
    const Tally tally = table.remove({other, found[1], found[2], flow(99)});
    EXPECT_EQ(tally.error, 0) << tally.text;
    EXPECT_EQ(tally.done, 1U);
    EXPECT_EQ(tally.gone, 3U);
    EXPECT_EQ(listed(table).size(), 3U);
  });
}

TEST(Conntrack, MarksNoneThatTookThePlace) {
  in_namespace([] {
    std::vector<Entry> entries = flows(4);
    for (Entry& entry : entries) entry.mark = 3;
    create(entries);
    Table table;
    ASSERT_EQ(table.open(), 0);
    std::vector<Entry> found = listed(table);
    ASSERT_EQ(found.size(), 4U);
    ASSERT_EQ(table.remove({found[2]}).done, 1U);
    create({moved(found[2])});
    Entry other = found[0];
    ++other.id;
    const Tally tally = table.mark({other, found[1], found[2], flow(99)}, kCut, kCut);
    EXPECT_EQ(tally.error, 0) << tally.text;
    EXPECT_EQ(tally.done, 1U);
    EXPECT_EQ(tally.gone, 3U);
    std::vector<std::uint32_t> marks;
    for (const Entry& entry : listed(table)) marks.push_back(entry.mark);
    std::sort(marks.begin(), marks.end());
    EXPECT_EQ(marks, (std::vector<std::uint32_t>{3, 3, 3, kCut | 3}));
    const auto cut = listed(table, {.mark = kCut, .mark_mask = kCut});
    EXPECT_EQ(table.mark(cut, 0, kCut).done, 1U);
    EXPECT_TRUE(listed(table, {.mark = kCut, .mark_mask = kCut}).empty());
  });
}

TEST(Conntrack, CarriesTenThousandAtOnce) {
  in_namespace([] {
    constexpr std::uint32_t kMany = 10'000;
    create(flows(kMany));
    Table table;
    ASSERT_EQ(table.open(), 0);
    const auto timed = [](const char* what, const auto& call) {
      const auto start = std::chrono::steady_clock::now();
      auto result = call();
      std::printf("%u: %s %.1f ms\n", kMany, what, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
      return result;
    };
    // An entry that the kernel moves during a dump may come twice, or not at all; one that is made by hand is not moved.
    const auto all = timed("list all", [&] { return listed(table); });
    EXPECT_EQ(all.size(), kMany);
    EXPECT_EQ(timed("list one back-end", [&] { return listed(table, {.any_of = {{Part::backend, 0, v4(0x0a010003, 8080)}}}); }).size(), kMany / 10);
    EXPECT_EQ(timed("mark all", [&] { return table.mark(all, kCut, kCut); }).done, kMany);
    EXPECT_EQ(listed(table, {.mark = kCut, .mark_mask = kCut}).size(), kMany);
    EXPECT_EQ(timed("remove all", [&] { return table.remove(all); }).done, kMany);
    EXPECT_TRUE(listed(table).empty());
  });
}

TEST(ConntrackRow, GoesAndComesBack) {
  Entry entry = flow6(3);
  entry.tcp_state = 3;
  entry.zone = 0x1234;
  entry.id = 0xfedcba98;
  entry.mark = 0x60000001;
  entry.status = 0x18e;
  entry.timeout = 431'999;
  Bytes rows;
  append_row(entry, rows);
  append_row(flow(1), rows);
  EXPECT_EQ(rows.size(), 2 * kRowBytes);
  const auto read = read_rows(rows);
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, (std::vector<Entry>{entry, flow(1)}));
  EXPECT_FALSE(read_rows(std::span(rows).first(95)));
  rows[0] = 5;
  EXPECT_FALSE(read_rows(rows));
}

TEST(ConntrackMessage, KeepsIcmpsNumbers) {
  Entry ping;
  ping.protocol = IPPROTO_ICMP;
  ping.reply = {v4(1, 0x4242), v4(2, 8 << 8)};
  netlink::Writer writer;
  put_delete(writer, ping, 0, 1);
  const auto bytes = writer.take();
  std::span<const std::uint8_t> rest(bytes);
  const auto message = netlink::next_message(rest);
  const auto tuple = netlink::find_attribute(message->body.subspan(sizeof(nfgenmsg)), CTA_TUPLE_REPLY);
  const auto protocol = netlink::find_attribute(tuple->value, CTA_TUPLE_PROTO)->value;
  EXPECT_EQ(netlink::find_attribute(protocol, CTA_PROTO_ICMP_ID)->u32(), 0x4242U);
  EXPECT_EQ(netlink::find_attribute(protocol, CTA_PROTO_ICMP_TYPE)->u32(), 8U);
  EXPECT_EQ(netlink::find_attribute(protocol, CTA_PROTO_ICMP_CODE)->u32(), 0U);
}

}  // namespace
}  // namespace holdfast::conntrack
