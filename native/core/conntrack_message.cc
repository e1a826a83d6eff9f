#include "conntrack_message.h"

#include <arpa/inet.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <netinet/in.h>

#include <algorithm>

namespace holdfast::conntrack {
namespace {

using netlink::Attribute;
using netlink::find_attribute;
using netlink::next_attribute;
using netlink::Writer;
using Span = std::span<const std::uint8_t>;

/// What of a tuple the kernel compares: CTA_FILTER_F_* of net/netfilter/nf_internals.h, which no header of uapi has.
constexpr std::uint32_t kCompareSource = 1 << 0;
constexpr std::uint32_t kCompareDestination = 1 << 1;
constexpr std::uint32_t kCompareProtocol = 1 << 3;

bool is_v4(const net::SocketAddress& address) noexcept { return address.family == net::Family::ipv4; }
std::uint8_t family_number(net::Family family) noexcept { return family == net::Family::ipv4 ? AF_INET : AF_INET6; }

void begin(Writer& writer, std::uint8_t message, std::uint16_t flags, std::uint8_t family, std::uint32_t sequence) {
  const nfgenmsg header{family, NFNETLINK_V0, 0};
  writer.begin_message(static_cast<std::uint16_t>(NFNL_SUBSYS_CTNETLINK << 8 | message), static_cast<std::uint16_t>(NLM_F_REQUEST | flags), sequence,
                       {reinterpret_cast<const std::uint8_t*>(&header), sizeof header});
}

void begin(Writer& writer, std::uint8_t message, std::uint16_t flags, const Entry& entry, std::uint32_t sequence) {
  begin(writer, message, flags, family_number(entry.original.source.family), sequence);
}

void put_address(Writer& writer, std::uint16_t v4, std::uint16_t v6, const net::SocketAddress& address) {
  if (is_v4(address)) writer.put(v4, Span(address.bytes).first(4));
  else writer.put(v6, address.bytes);
}

void put_ports(Writer& writer, const Tuple& tuple, std::uint8_t protocol) {
  if (protocol == IPPROTO_ICMP || protocol == IPPROTO_ICMPV6) {
    const bool v4 = protocol == IPPROTO_ICMP;
    writer.put_u16(v4 ? CTA_PROTO_ICMP_ID : CTA_PROTO_ICMPV6_ID, tuple.source.port);
    writer.put_u8(v4 ? CTA_PROTO_ICMP_TYPE : CTA_PROTO_ICMPV6_TYPE, static_cast<std::uint8_t>(tuple.destination.port >> 8));
    writer.put_u8(v4 ? CTA_PROTO_ICMP_CODE : CTA_PROTO_ICMPV6_CODE, static_cast<std::uint8_t>(tuple.destination.port));
  } else {
    writer.put_u16(CTA_PROTO_SRC_PORT, tuple.source.port);
    writer.put_u16(CTA_PROTO_DST_PORT, tuple.destination.port);
  }
}

void put_tuple(Writer& writer, std::uint16_t type, const Tuple& tuple, std::uint8_t protocol) {
  const std::size_t nest = writer.begin_nest(type);
  const std::size_t addresses = writer.begin_nest(CTA_TUPLE_IP);
  put_address(writer, CTA_IP_V4_SRC, CTA_IP_V6_SRC, tuple.source);
  put_address(writer, CTA_IP_V4_DST, CTA_IP_V6_DST, tuple.destination);
  writer.end_nest(addresses);
  const std::size_t protocols = writer.begin_nest(CTA_TUPLE_PROTO);
  writer.put_u8(CTA_PROTO_NUM, protocol);
  put_ports(writer, tuple, protocol);
  writer.end_nest(protocols);
  writer.end_nest(nest);
}

/// By the answers' tuple, which names who answers: a flow of the same client that has gone to another back-end meanwhile is not found by it. The id
/// alone does not tell them apart, as the kernel makes it of the original tuple and the entry's place in memory, which is soon used again.
void put_identity(Writer& writer, const Entry& entry) {
  put_tuple(writer, CTA_TUPLE_REPLY, entry.reply, entry.protocol);
  if (entry.zone != 0) writer.put_u16(CTA_ZONE, entry.zone);
}

/// In the byte order of the machine, unlike everything else here.
void put_native(Writer& writer, std::uint16_t type, std::uint32_t value) { writer.put(type, {reinterpret_cast<const std::uint8_t*>(&value), sizeof value}); }

/// Tuples to compare with, and which of their parts count.
void put_tuple_filter(Writer& writer, const Filter& filter, net::Family family) {
  Tuple tuple{{family, 0, {}}, {family, 0, {}}};
  std::uint32_t original = filter.protocol != 0 ? kCompareProtocol : 0, reply = 0;
  // Linux 6.18 and before let through every IPv6 address but the one that is asked for.
  if (filter.any_of.size() == 1 && family == net::Family::ipv4) {
    const Selector& selector = filter.any_of.front();
    const bool destination = selector.part == Part::destination;
    (destination ? tuple.destination : tuple.source) = selector.address;
    (selector.part == Part::backend ? reply : original) |= destination ? kCompareDestination : kCompareSource;
  }
  if (original != 0) put_tuple(writer, CTA_TUPLE_ORIG, tuple, filter.protocol);
  if (reply != 0) put_tuple(writer, CTA_TUPLE_REPLY, tuple, filter.protocol);
  if (original == 0 && reply == 0) return;
  const std::size_t nest = writer.begin_nest(CTA_FILTER);
  put_native(writer, CTA_FILTER_ORIG_FLAGS, original);
  put_native(writer, CTA_FILTER_REPLY_FLAGS, reply);
  writer.end_nest(nest);
}

bool read_address(const Attribute& attribute, net::SocketAddress& address) noexcept {
  if (attribute.value.size() != 4 && attribute.value.size() != 16) return false;
  address.family = attribute.value.size() == 4 ? net::Family::ipv4 : net::Family::ipv6;
  std::copy(attribute.value.begin(), attribute.value.end(), address.bytes.begin());
  return true;
}

void read_ports(Span attributes, Tuple& tuple, std::uint8_t& protocol) noexcept {
  const auto number = [&](std::uint16_t type) {
    const auto found = find_attribute(attributes, type);
    return found ? found->u32() : 0U;
  };
  protocol = static_cast<std::uint8_t>(number(CTA_PROTO_NUM));
  if (protocol == IPPROTO_ICMP || protocol == IPPROTO_ICMPV6) {
    const bool v4 = protocol == IPPROTO_ICMP;
    const auto type = number(v4 ? CTA_PROTO_ICMP_TYPE : CTA_PROTO_ICMPV6_TYPE);
    const auto code = number(v4 ? CTA_PROTO_ICMP_CODE : CTA_PROTO_ICMPV6_CODE);
    tuple.source.port = static_cast<std::uint16_t>(number(v4 ? CTA_PROTO_ICMP_ID : CTA_PROTO_ICMPV6_ID));
    tuple.destination.port = static_cast<std::uint16_t>(type << 8 | (code & 0xff));
  } else {
    tuple.source.port = static_cast<std::uint16_t>(number(CTA_PROTO_SRC_PORT));
    tuple.destination.port = static_cast<std::uint16_t>(number(CTA_PROTO_DST_PORT));
  }
}

/// Whether both addresses are there and of one family.
bool read_tuple(Span attributes, Tuple& tuple, std::uint8_t& protocol) noexcept {
  bool source = false, destination = false;
  while (const auto part = next_attribute(attributes)) {
    if (part->type == CTA_TUPLE_PROTO) read_ports(part->value, tuple, protocol);
    if (part->type != CTA_TUPLE_IP) continue;
    for (Span rest = part->value; const auto address = next_attribute(rest);) {
      if (address->type == CTA_IP_V4_SRC || address->type == CTA_IP_V6_SRC) source = read_address(*address, tuple.source);
      else if (address->type == CTA_IP_V4_DST || address->type == CTA_IP_V6_DST) destination = read_address(*address, tuple.destination);
    }
  }
  return source && destination && tuple.source.family == tuple.destination.family;
}

std::uint8_t tcp_state(Span protocol_info) noexcept {
  const auto tcp = find_attribute(protocol_info, CTA_PROTOINFO_TCP);
  const auto state = tcp ? find_attribute(tcp->value, CTA_PROTOINFO_TCP_STATE) : std::nullopt;
  return state ? static_cast<std::uint8_t>(state->u32()) : 0;
}

void read_attribute(const Attribute& attribute, Entry& entry) noexcept {
  switch (attribute.type) {
    case CTA_ID: entry.id = attribute.u32(); break;
    case CTA_MARK: entry.mark = attribute.u32(); break;
    case CTA_STATUS: entry.status = attribute.u32(); break;
    case CTA_TIMEOUT: entry.timeout = attribute.u32(); break;
    case CTA_ZONE: entry.zone = static_cast<std::uint16_t>(attribute.u32()); break;
    case CTA_PROTOINFO: entry.tcp_state = tcp_state(attribute.value); break;
    default: break;
  }
}

}  // namespace

void put_dump(Writer& writer, const Filter& filter, bool by_tuple, std::uint32_t sequence) {
  // One selector says the family too.
  auto family = filter.family;
  if (!family && filter.any_of.size() == 1) family = filter.any_of.front().address.family;
  begin(writer, IPCTNL_MSG_CT_GET, NLM_F_DUMP, family ? family_number(*family) : std::uint8_t{AF_UNSPEC}, sequence);
  if (filter.mark_mask != 0) {
    writer.put_u32(CTA_MARK, filter.mark & filter.mark_mask);
    writer.put_u32(CTA_MARK_MASK, filter.mark_mask);
  }
  if (by_tuple && family) put_tuple_filter(writer, filter, *family);
  writer.end_message();
}

void put_delete(Writer& writer, const Entry& entry, std::uint16_t flags, std::uint32_t sequence) {
  begin(writer, IPCTNL_MSG_CT_DELETE, flags, entry, sequence);
  put_identity(writer, entry);
  writer.put_u32(CTA_ID, entry.id);
  writer.end_message();
}

void put_mark(Writer& writer, const Entry& entry, std::uint32_t mark, std::uint32_t mask, std::uint32_t sequence) {
  begin(writer, IPCTNL_MSG_CT_NEW, 0, entry, sequence);
  put_identity(writer, entry);
  writer.put_u32(CTA_MARK, mark & mask);
  writer.put_u32(CTA_MARK_MASK, mask);
  writer.end_message();
}

void put_get(Writer& writer, const Entry& entry, std::uint16_t flags, std::uint32_t sequence) {
  begin(writer, IPCTNL_MSG_CT_GET, flags, entry, sequence);
  put_identity(writer, entry);
  writer.end_message();
}

std::optional<Entry> read_entry(const netlink::Message& message) noexcept {
  const bool is_entry = message.header.nlmsg_type == (NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_NEW);
  if (!is_entry || message.body.size() < sizeof(nfgenmsg)) return std::nullopt;
  Entry entry;
  std::uint8_t reply_protocol = 0;
  bool original = false, reply = false;
  for (Span rest = message.body.subspan(sizeof(nfgenmsg)); const auto attribute = next_attribute(rest);) {
    if (attribute->type == CTA_TUPLE_ORIG) original = read_tuple(attribute->value, entry.original, entry.protocol);
    else if (attribute->type == CTA_TUPLE_REPLY) reply = read_tuple(attribute->value, entry.reply, reply_protocol);
    else read_attribute(*attribute, entry);
  }
  if (!original || !reply || entry.original.source.family != entry.reply.source.family) return std::nullopt;
  return entry;
}

std::optional<Answer> read_answer(const netlink::Message& message) noexcept {
  const bool is_answer = message.header.nlmsg_type == NLMSG_ERROR || message.header.nlmsg_type == NLMSG_DONE;
  std::int32_t error;
  if (!is_answer || message.body.size() < sizeof error) return std::nullopt;
  std::memcpy(&error, message.body.data(), sizeof error);
  return Answer{message.header.nlmsg_seq, error};
}

}  // namespace holdfast::conntrack
