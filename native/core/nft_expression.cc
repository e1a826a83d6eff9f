#include "nft_expression.h"

#include <linux/netfilter/nf_tables.h>

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

namespace holdfast::nft {
namespace {

enum class Form { u8, u16, u32, u64, text, data, verdict };

struct Field {
  std::uint16_t attribute;
  Form form;
};

constexpr std::size_t kMostFields = 7;

/// What we call it, what the kernel calls it, and its attributes in the order of the values. A verdict takes two values: code and chain.
struct Shape {
  std::string_view name;
  const char* kernel;
  std::size_t count;
  std::array<Field, kMostFields> fields;
};

constexpr std::array kShapes{
    Shape{"bitwise", "bitwise", 5, {{{NFTA_BITWISE_SREG, Form::u32}, {NFTA_BITWISE_DREG, Form::u32}, {NFTA_BITWISE_LEN, Form::u32}, {NFTA_BITWISE_MASK, Form::data}, {NFTA_BITWISE_XOR, Form::data}}}},
    Shape{"cmp", "cmp", 3, {{{NFTA_CMP_SREG, Form::u32}, {NFTA_CMP_OP, Form::u32}, {NFTA_CMP_DATA, Form::data}}}},
    Shape{"counter", "counter", 0, {}},
    Shape{"ct-direction-load", "ct", 3, {{{NFTA_CT_KEY, Form::u32}, {NFTA_CT_DREG, Form::u32}, {NFTA_CT_DIRECTION, Form::u8}}}},
    Shape{"ct-load", "ct", 2, {{{NFTA_CT_KEY, Form::u32}, {NFTA_CT_DREG, Form::u32}}}},
    Shape{"ct-set", "ct", 2, {{{NFTA_CT_KEY, Form::u32}, {NFTA_CT_SREG, Form::u32}}}},
    Shape{"dynset", "dynset", 5, {{{NFTA_DYNSET_SET_NAME, Form::text}, {NFTA_DYNSET_OP, Form::u32}, {NFTA_DYNSET_SREG_KEY, Form::u32}, {NFTA_DYNSET_SREG_DATA, Form::u32}, {NFTA_DYNSET_TIMEOUT, Form::u64}}}},
    Shape{"fib", "fib", 3, {{{NFTA_FIB_DREG, Form::u32}, {NFTA_FIB_RESULT, Form::u32}, {NFTA_FIB_FLAGS, Form::u32}}}},
    Shape{"immediate", "immediate", 2, {{{NFTA_IMMEDIATE_DREG, Form::u32}, {NFTA_IMMEDIATE_DATA, Form::data}}}},
    Shape{"jhash", "hash", 7, {{{NFTA_HASH_SREG, Form::u32}, {NFTA_HASH_DREG, Form::u32}, {NFTA_HASH_LEN, Form::u32}, {NFTA_HASH_MODULUS, Form::u32}, {NFTA_HASH_SEED, Form::u32}, {NFTA_HASH_OFFSET, Form::u32}, {NFTA_HASH_TYPE, Form::u32}}}},
    Shape{"limit", "limit", 5, {{{NFTA_LIMIT_RATE, Form::u64}, {NFTA_LIMIT_UNIT, Form::u64}, {NFTA_LIMIT_BURST, Form::u32}, {NFTA_LIMIT_TYPE, Form::u32}, {NFTA_LIMIT_FLAGS, Form::u32}}}},
    Shape{"log", "log", 1, {{{NFTA_LOG_PREFIX, Form::text}}}},
    // To the kernel's own log, of this level; or to whoever listens to the group (nfnetlink_log): so much of each packet, so many together.
    Shape{"log-group", "log", 4, {{{NFTA_LOG_GROUP, Form::u16}, {NFTA_LOG_PREFIX, Form::text}, {NFTA_LOG_SNAPLEN, Form::u32}, {NFTA_LOG_QTHRESHOLD, Form::u16}}}},
    Shape{"log-level", "log", 2, {{{NFTA_LOG_LEVEL, Form::u32}, {NFTA_LOG_PREFIX, Form::text}}}},
    Shape{"lookup", "lookup", 3, {{{NFTA_LOOKUP_SET, Form::text}, {NFTA_LOOKUP_SREG, Form::u32}, {NFTA_LOOKUP_DREG, Form::u32}}}},
    Shape{"masquerade", "masq", 0, {}},
    Shape{"member", "lookup", 3, {{{NFTA_LOOKUP_SET, Form::text}, {NFTA_LOOKUP_SREG, Form::u32}, {NFTA_LOOKUP_FLAGS, Form::u32}}}},
    Shape{"meta-load", "meta", 2, {{{NFTA_META_KEY, Form::u32}, {NFTA_META_DREG, Form::u32}}}},
    Shape{"meta-set", "meta", 2, {{{NFTA_META_KEY, Form::u32}, {NFTA_META_SREG, Form::u32}}}},
    Shape{"nat", "nat", 4, {{{NFTA_NAT_TYPE, Form::u32}, {NFTA_NAT_FAMILY, Form::u32}, {NFTA_NAT_REG_ADDR_MIN, Form::u32}, {NFTA_NAT_REG_PROTO_MIN, Form::u32}}}},
    Shape{"notrack", "notrack", 0, {}},
    Shape{"numgen", "numgen", 4, {{{NFTA_NG_DREG, Form::u32}, {NFTA_NG_MODULUS, Form::u32}, {NFTA_NG_TYPE, Form::u32}, {NFTA_NG_OFFSET, Form::u32}}}},
    // By a named object of this type: 1 is a counter.
    Shape{"object", "objref", 2, {{{NFTA_OBJREF_IMM_TYPE, Form::u32}, {NFTA_OBJREF_IMM_NAME, Form::text}}}},
    Shape{"payload", "payload", 4, {{{NFTA_PAYLOAD_DREG, Form::u32}, {NFTA_PAYLOAD_BASE, Form::u32}, {NFTA_PAYLOAD_OFFSET, Form::u32}, {NFTA_PAYLOAD_LEN, Form::u32}}}},
    Shape{"reject", "reject", 2, {{{NFTA_REJECT_TYPE, Form::u32}, {NFTA_REJECT_ICMP_CODE, Form::u8}}}},
    Shape{"socket", "socket", 2, {{{NFTA_SOCKET_KEY, Form::u32}, {NFTA_SOCKET_DREG, Form::u32}}}},
    Shape{"verdict", "immediate", 2, {{{NFTA_IMMEDIATE_DREG, Form::u32}, {NFTA_IMMEDIATE_DATA, Form::verdict}}}},
};

std::size_t values_of(const Shape& shape) noexcept {
  std::size_t count = 0;
  for (const Field& field : std::span(shape.fields).first(shape.count)) count += field.form == Form::verdict ? 2 : 1;
  return count;
}

bool put_number(netlink::Writer& writer, const Field& field, const Value& value) {
  const auto* number = std::get_if<std::uint64_t>(&value);
  if (number == nullptr) return false;
  if (field.form == Form::u64) return writer.put_u64(field.attribute, *number), true;
  if (field.form == Form::u8 && *number <= 0xff) return writer.put_u8(field.attribute, static_cast<std::uint8_t>(*number)), true;
  if (field.form == Form::u16 && *number <= 0xffff) return writer.put_u16(field.attribute, static_cast<std::uint16_t>(*number)), true;
  if (field.form == Form::u32 && *number <= 0xffff'ffff) return writer.put_u32(field.attribute, static_cast<std::uint32_t>(*number)), true;
  return false;
}

bool put_text(netlink::Writer& writer, const Field& field, const Value& value) {
  const auto* text = std::get_if<std::string>(&value);
  if (text == nullptr) return false;
  writer.put_string(field.attribute, *text);
  return true;
}

bool put_data(netlink::Writer& writer, const Field& field, const Value& value) {
  const auto* bytes = std::get_if<Bytes>(&value);
  if (bytes == nullptr) return false;
  const std::size_t nest = writer.begin_nest(field.attribute);
  writer.put(NFTA_DATA_VALUE, *bytes);
  writer.end_nest(nest);
  return true;
}

bool put_verdict_field(netlink::Writer& writer, const Field& field, const Value& code, const Value& chain) {
  const auto* number = std::get_if<std::uint64_t>(&code);
  const auto* name = std::get_if<std::string>(&chain);
  if (number == nullptr || name == nullptr || *number > 0xffff'ffff) return false;
  const std::size_t nest = writer.begin_nest(field.attribute);
  put_verdict(writer, static_cast<std::uint32_t>(*number), *name);
  writer.end_nest(nest);
  return true;
}

/// Whether each value has the form of its field; `at` is then the one behind the last.
bool put_values(netlink::Writer& writer, const Shape& shape, const std::vector<Value>& values, std::size_t& at) {
  for (const Field& field : std::span(shape.fields).first(shape.count)) {
    bool fits;
    if (field.form == Form::verdict) fits = put_verdict_field(writer, field, values[at], values[at + 1]), ++at;
    else if (field.form == Form::text) fits = put_text(writer, field, values[at]);
    else if (field.form == Form::data) fits = put_data(writer, field, values[at]);
    else fits = put_number(writer, field, values[at]);
    if (!fits) return false;
    ++at;
  }
  return true;
}

}  // namespace

void put_verdict(netlink::Writer& writer, std::uint32_t code, const std::string& chain) {
  const std::size_t nest = writer.begin_nest(NFTA_DATA_VERDICT);
  writer.put_u32(NFTA_VERDICT_CODE, code);
  if (!chain.empty()) writer.put_string(NFTA_VERDICT_CHAIN, chain);
  writer.end_nest(nest);
}

std::string put_expression(netlink::Writer& writer, const Expression& expression) {
  const auto* shape = std::find_if(kShapes.begin(), kShapes.end(), [&](const Shape& one) { return one.name == expression.name; });
  if (shape == kShapes.end()) return "there is no expression " + expression.name;
  const std::size_t wanted = values_of(*shape);
  if (expression.values.size() != wanted) {
    return expression.name + " takes " + std::to_string(wanted) + " values, not " + std::to_string(expression.values.size());
  }
  const std::size_t element = writer.begin_nest(NFTA_LIST_ELEM);
  writer.put_string(NFTA_EXPR_NAME, shape->kernel);
  const std::size_t data = writer.begin_nest(NFTA_EXPR_DATA);
  std::size_t at = 0;
  if (!put_values(writer, *shape, expression.values, at)) return expression.name + ": value " + std::to_string(at + 1) + " is of another kind or too large";
  writer.end_nest(data);
  writer.end_nest(element);
  return "";
}

}  // namespace holdfast::nft
