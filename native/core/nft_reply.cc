#include "nft_reply.h"

#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>

#include <cstring>

namespace holdfast::nft {
namespace {

using netlink::Attribute;
using netlink::find_attribute;
using netlink::Message;
using Span = std::span<const std::uint8_t>;

std::string text_of(Span attributes, std::uint16_t type) {
  const auto found = find_attribute(attributes, type);
  return found ? found->text() : "";
}

std::uint32_t u32_of(Span attributes, std::uint16_t type) noexcept {
  const auto found = find_attribute(attributes, type);
  return found ? found->u32() : 0;
}

Bytes bytes_of(Span attributes, std::uint16_t type) {
  const auto found = find_attribute(attributes, type);
  return found ? Bytes(found->value.begin(), found->value.end()) : Bytes();
}

/// The error number that follows the header of NLMSG_ERROR and NLMSG_DONE.
std::optional<int> error_of(const Message& message) noexcept {
  std::int32_t error;
  if (message.body.size() < sizeof error) return std::nullopt;
  std::memcpy(&error, message.body.data(), sizeof error);
  return error;
}

/// The attributes behind the error and the header of the message that it is about; NLM_F_CAPPED says that only its header came back.
std::string words_of(const Message& message) {
  if ((message.header.nlmsg_flags & NLM_F_ACK_TLVS) == 0 || message.body.size() < sizeof(nlmsgerr)) return "";
  nlmsgerr about;
  std::memcpy(&about, message.body.data(), sizeof about);
  const bool capped = (message.header.nlmsg_flags & NLM_F_CAPPED) != 0;
  const std::size_t skip = capped ? sizeof about : sizeof about.error + NLMSG_ALIGN(std::size_t{about.msg.nlmsg_len});
  return skip > message.body.size() ? "" : text_of(message.body.subspan(skip), NLMSGERR_ATTR_MSG);
}

void read_chain(Span attributes, Object& object) {
  object.table = text_of(attributes, NFTA_CHAIN_TABLE);
  object.chain = text_of(attributes, NFTA_CHAIN_NAME);
  object.type = text_of(attributes, NFTA_CHAIN_TYPE);
  object.policy = u32_of(attributes, NFTA_CHAIN_POLICY);
  object.flags = u32_of(attributes, NFTA_CHAIN_FLAGS);
  if (const auto handle = find_attribute(attributes, NFTA_CHAIN_HANDLE)) object.handle = handle->u64();
  if (const auto hook = find_attribute(attributes, NFTA_CHAIN_HOOK)) {
    object.hook = u32_of(hook->value, NFTA_HOOK_HOOKNUM);
    object.priority = static_cast<std::int32_t>(u32_of(hook->value, NFTA_HOOK_PRIORITY));
    object.device = text_of(hook->value, NFTA_HOOK_DEV);
  }
}

void read_rule(Span attributes, Object& object) {
  object.table = text_of(attributes, NFTA_RULE_TABLE);
  object.chain = text_of(attributes, NFTA_RULE_CHAIN);
  object.expressions = bytes_of(attributes, NFTA_RULE_EXPRESSIONS);
  if (const auto handle = find_attribute(attributes, NFTA_RULE_HANDLE)) object.handle = handle->u64();
}

void read_counter(Span attributes, Object& object) {
  object.table = text_of(attributes, NFTA_OBJ_TABLE);
  object.counter = text_of(attributes, NFTA_OBJ_NAME);
  const auto data = find_attribute(attributes, NFTA_OBJ_DATA);
  if (!data) return;
  if (const auto packets = find_attribute(data->value, NFTA_COUNTER_PACKETS)) object.packets = packets->u64();
  if (const auto bytes = find_attribute(data->value, NFTA_COUNTER_BYTES)) object.bytes = bytes->u64();
}

/// A verdict's chain, or the bytes of a value.
void read_data(Span data, Object& object) {
  object.data = bytes_of(data, NFTA_DATA_VALUE);
  if (const auto verdict = find_attribute(data, NFTA_DATA_VERDICT)) object.chain = text_of(verdict->value, NFTA_VERDICT_CHAIN);
}

void read_elements(Span attributes, const Object& list, std::vector<Object>& objects) {
  const auto elements = find_attribute(attributes, NFTA_SET_ELEM_LIST_ELEMENTS);
  if (!elements) return;
  for (Span rest = elements->value; const auto element = netlink::next_attribute(rest);) {
    Object object = list;
    object.flags = u32_of(element->value, NFTA_SET_ELEM_FLAGS);
    if (const auto expires = find_attribute(element->value, NFTA_SET_ELEM_EXPIRATION)) object.expires_ms = expires->u64();
    if (const auto key = find_attribute(element->value, NFTA_SET_ELEM_KEY)) object.key = bytes_of(key->value, NFTA_DATA_VALUE);
    if (const auto data = find_attribute(element->value, NFTA_SET_ELEM_DATA)) read_data(data->value, object);
    objects.push_back(std::move(object));
  }
}

void read_object(const Message& message, std::vector<Object>& objects) {
  nfgenmsg header;
  if (message.header.nlmsg_type >> 8 != NFNL_SUBSYS_NFTABLES || message.body.size() < sizeof header) return;
  std::memcpy(&header, message.body.data(), sizeof header);
  const Span attributes = message.body.subspan(sizeof header);
  Object object;
  object.family = header.nfgen_family;
  switch (message.header.nlmsg_type & 0xff) {
    case NFT_MSG_NEWTABLE:
      object.table = text_of(attributes, NFTA_TABLE_NAME);
      object.flags = u32_of(attributes, NFTA_TABLE_FLAGS);
      object.owner = u32_of(attributes, NFTA_TABLE_OWNER);
      break;
    case NFT_MSG_NEWCHAIN:
      object.kind = ObjectKind::chain;
      read_chain(attributes, object);
      break;
    case NFT_MSG_NEWRULE:
      object.kind = ObjectKind::rule;
      read_rule(attributes, object);
      break;
    case NFT_MSG_NEWSET:
      object.kind = ObjectKind::set;
      object.table = text_of(attributes, NFTA_SET_TABLE);
      object.set = text_of(attributes, NFTA_SET_NAME);
      object.flags = u32_of(attributes, NFTA_SET_FLAGS);
      break;
    case NFT_MSG_NEWOBJ:
      if (u32_of(attributes, NFTA_OBJ_TYPE) != NFT_OBJECT_COUNTER) return;
      object.kind = ObjectKind::counter;
      read_counter(attributes, object);
      break;
    case NFT_MSG_NEWSETELEM:
      object.kind = ObjectKind::element;
      object.table = text_of(attributes, NFTA_SET_ELEM_LIST_TABLE);
      object.set = text_of(attributes, NFTA_SET_ELEM_LIST_SET);
      return read_elements(attributes, object, objects);
    default:
      return;
  }
  objects.push_back(std::move(object));
}

}  // namespace

bool read_answers(Span datagram, Answers& answers) {
  while (const auto message = netlink::next_message(datagram)) {
    if (message->header.nlmsg_type != NLMSG_ERROR) continue;
    const auto error = error_of(*message);
    if (!error) return false;
    if (*error == 0) {
      answers.done.push_back(message->header.nlmsg_seq);
    } else if (answers.error == 0) {
      answers.error = *error;
      answers.error_sequence = message->header.nlmsg_seq;
      answers.text = words_of(*message);
    }
  }
  return datagram.empty();
}

bool read_dump(Span datagram, std::uint32_t sequence, Dump& dump) {
  while (const auto message = netlink::next_message(datagram)) {
    if (message->header.nlmsg_seq != sequence) continue;
    if ((message->header.nlmsg_flags & NLM_F_DUMP_INTR) != 0) dump.interrupted = true;
    if (message->header.nlmsg_type == NLMSG_ERROR || message->header.nlmsg_type == NLMSG_DONE) {
      const auto error = error_of(*message);
      if (!error) return false;
      dump.error = *error;
      dump.ended = true;
      continue;
    }
    read_object(*message, dump.objects);
  }
  return datagram.empty();
}

std::optional<std::uint32_t> read_generation(Span datagram, std::uint32_t sequence) noexcept {
  while (const auto message = netlink::next_message(datagram)) {
    const bool ours = message->header.nlmsg_seq == sequence && message->header.nlmsg_type == (NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWGEN);
    if (!ours || message->body.size() < sizeof(nfgenmsg)) continue;
    if (const auto id = find_attribute(message->body.subspan(sizeof(nfgenmsg)), NFTA_GEN_ID)) return id->u32();
  }
  return std::nullopt;
}

}  // namespace holdfast::nft
