#include "nft_encoder.h"

#include <arpa/inet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>

#include <numeric>

#include "nft_expression.h"

namespace holdfast::nft {
namespace {

/// Elements of one message: room for the last one and the names stays below the 65,535 bytes of an attribute.
constexpr std::size_t kElementsBytes = 60'000;

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};

std::span<const std::uint8_t> view(const nfgenmsg& header) noexcept { return {reinterpret_cast<const std::uint8_t*>(&header), sizeof header}; }

std::uint32_t padded(std::uint32_t bytes) noexcept { return NLMSG_ALIGN(bytes); }

class Encoder {
 public:
  Encoder(std::uint32_t first, std::optional<std::uint32_t> generation) : sequence_(first), generation_(generation) {}

  Batch run(const Plan& plan) {
    frame(NFNL_MSG_BATCH_BEGIN);
    for (operation_ = 0; operation_ < plan.size(); ++operation_) {
      std::string problem = put(plan[operation_]);
      if (problem.empty() && writer_.overflowed()) problem = "it takes more than the 65,535 bytes of an attribute";
      if (!problem.empty()) {
        batch_.operations.push_back(operation_);
        batch_.problem = std::move(problem);
        return std::move(batch_);
      }
    }
    frame(NFNL_MSG_BATCH_END);
    batch_.bytes = writer_.take();
    if (!batch_.operations.empty()) acknowledge(last_);
    return std::move(batch_);
  }

 private:
  void frame(std::uint16_t type) {
    writer_.begin_message(type, NLM_F_REQUEST, sequence_++, view({AF_UNSPEC, NFNETLINK_V0, htons(NFNL_SUBSYS_NFTABLES)}));
    if (type == NFNL_MSG_BATCH_BEGIN && generation_) writer_.put_u32(NFNL_BATCH_GENID, *generation_);
    writer_.end_message();
  }

  void begin(std::uint16_t type, std::uint16_t flags) {
    last_ = writer_.size();
    batch_.operations.push_back(operation_);
    writer_.begin_message(static_cast<std::uint16_t>(NFNL_SUBSYS_NFTABLES << 8 | type), NLM_F_REQUEST | flags, sequence_++,
                          view({NFPROTO_INET, NFNETLINK_V0, 0}));
  }

  void acknowledge(std::size_t at) noexcept {
    nlmsghdr header;
    std::memcpy(&header, batch_.bytes.data() + at, sizeof header);
    header.nlmsg_flags |= NLM_F_ACK;
    std::memcpy(batch_.bytes.data() + at, &header, sizeof header);
  }

  std::string put(const Operation& operation) {
    return std::visit(Overloaded{[&](const Table& table) { return put_table(operation, table); },
                                 [&](const Chain& chain) { return put_chain(operation, chain); },
                                 [&](const Rule& rule) { return put_rule(operation, rule); },
                                 [&](const Set& set) { return put_set(operation, set); },
                                 [&](const Elements& elements) { return put_elements(operation, elements); },
                                 [&](const Counter&) { return put_counter(operation); }, [&](const Flush&) { return put_flush(operation); },
                                 [&](const Remove& removal) { return put_removal(operation, removal); }},
                      operation.what);
  }

  std::string put_table(const Operation& operation, const Table& table) {
    begin(NFT_MSG_NEWTABLE, NLM_F_CREATE);
    writer_.put_string(NFTA_TABLE_NAME, operation.table);
    writer_.put_u32(NFTA_TABLE_FLAGS, table.flags);
    writer_.end_message();
    return "";
  }

  std::string put_chain(const Operation& operation, const Chain& chain) {
    begin(NFT_MSG_NEWCHAIN, NLM_F_CREATE);
    writer_.put_string(NFTA_CHAIN_TABLE, operation.table);
    writer_.put_string(NFTA_CHAIN_NAME, operation.chain);
    if (chain.hook) {
      const std::size_t nest = writer_.begin_nest(NFTA_CHAIN_HOOK);
      writer_.put_u32(NFTA_HOOK_HOOKNUM, chain.hook->number);
      writer_.put_u32(NFTA_HOOK_PRIORITY, static_cast<std::uint32_t>(chain.hook->priority));
      if (!chain.hook->device.empty()) writer_.put_string(NFTA_HOOK_DEV, chain.hook->device);
      writer_.end_nest(nest);
      writer_.put_string(NFTA_CHAIN_TYPE, chain.hook->type);
    }
    writer_.end_message();
    return "";
  }

  std::string put_rule(const Operation& operation, const Rule& rule) {
    begin(NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND);
    writer_.put_string(NFTA_RULE_TABLE, operation.table);
    writer_.put_string(NFTA_RULE_CHAIN, operation.chain);
    const std::size_t nest = writer_.begin_nest(NFTA_RULE_EXPRESSIONS);
    for (const Expression& expression : rule.expressions) {
      std::string problem = put_expression(writer_, expression);
      if (!problem.empty()) return problem;
    }
    writer_.end_nest(nest);
    writer_.end_message();
    return "";
  }

  std::string put_set(const Operation& operation, const Set& set) {
    const auto key = std::accumulate(set.fields.begin(), set.fields.end(), 0U, [](std::uint32_t sum, std::uint32_t one) { return sum + padded(one); });
    begin(NFT_MSG_NEWSET, NLM_F_CREATE);
    writer_.put_string(NFTA_SET_TABLE, operation.table);
    writer_.put_string(NFTA_SET_NAME, operation.set);
    // The kernel wants a number for sets that have no name yet; ours have, so that any will do.
    writer_.put_u32(NFTA_SET_ID, operation_ + 1);
    writer_.put_u32(NFTA_SET_FLAGS, set.fields.size() > 1 ? set.flags | NFT_SET_CONCAT : set.flags);
    writer_.put_u32(NFTA_SET_KEY_TYPE, set.key_type);
    writer_.put_u32(NFTA_SET_KEY_LEN, set.fields.size() == 1 ? set.fields.front() : key);
    if (set.flags & NFT_SET_MAP) {
      writer_.put_u32(NFTA_SET_DATA_TYPE, set.data_type);
      writer_.put_u32(NFTA_SET_DATA_LEN, set.data_bytes);
    }
    if (set.timeout_ms != 0) writer_.put_u64(NFTA_SET_TIMEOUT, set.timeout_ms);
    put_description(set);
    writer_.end_message();
    return "";
  }

  void put_description(const Set& set) {
    const std::size_t description = writer_.begin_nest(NFTA_SET_DESC);
    if (set.size != 0) writer_.put_u32(NFTA_SET_DESC_SIZE, set.size);
    if (set.fields.size() > 1) {
      const std::size_t concatenated = writer_.begin_nest(NFTA_SET_DESC_CONCAT);
      for (const std::uint32_t field : set.fields) {
        const std::size_t nest = writer_.begin_nest(NFTA_LIST_ELEM);
        writer_.put_u32(NFTA_SET_FIELD_LEN, field);
        writer_.end_nest(nest);
      }
      writer_.end_nest(concatenated);
    }
    writer_.end_nest(description);
  }

  std::string put_elements(const Operation& operation, const Elements& elements) {
    const std::size_t step = elements.key_bytes + elements.data_bytes;
    if (elements.key_bytes == 0 || elements.packed.size() % step != 0) return "the elements are not of " + std::to_string(step) + " bytes each";
    const std::size_t count = elements.packed.size() / step;
    if (!elements.chains.empty() && elements.chains.size() != count) return "there are not as many chains as keys";
    for (std::size_t at = 0; at < count;) at = put_some(operation, elements, at, count);
    return "";
  }

  /// One message, from element `at` on; returns the first that is not in it.
  std::size_t put_some(const Operation& operation, const Elements& elements, std::size_t at, std::size_t count) {
    begin(operation.remove ? NFT_MSG_DELSETELEM : NFT_MSG_NEWSETELEM, operation.remove ? 0 : NLM_F_CREATE);
    writer_.put_string(NFTA_SET_ELEM_LIST_TABLE, operation.table);
    writer_.put_string(NFTA_SET_ELEM_LIST_SET, operation.set);
    const std::size_t list = writer_.begin_nest(NFTA_SET_ELEM_LIST_ELEMENTS);
    while (at < count && writer_.size() - list < kElementsBytes && !writer_.overflowed()) put_element(elements, at++);
    writer_.end_nest(list);
    writer_.end_message();
    return at;
  }

  void put_element(const Elements& elements, std::size_t index) {
    const std::span<const std::uint8_t> packed(elements.packed);
    const std::size_t start = index * (elements.key_bytes + elements.data_bytes);
    const std::size_t element = writer_.begin_nest(NFTA_LIST_ELEM);
    put_value(NFTA_SET_ELEM_KEY, packed.subspan(start, elements.key_bytes));
    if (elements.data_bytes != 0) put_value(NFTA_SET_ELEM_DATA, packed.subspan(start + elements.key_bytes, elements.data_bytes));
    if (!elements.chains.empty()) {
      const std::size_t nest = writer_.begin_nest(NFTA_SET_ELEM_DATA);
      put_verdict(writer_, static_cast<std::uint32_t>(elements.jump ? NFT_JUMP : NFT_GOTO), elements.chains[index]);
      writer_.end_nest(nest);
    }
    if (elements.timeout_ms != 0) writer_.put_u64(NFTA_SET_ELEM_TIMEOUT, elements.timeout_ms);
    writer_.end_nest(element);
  }

  void put_value(std::uint16_t type, std::span<const std::uint8_t> bytes) {
    const std::size_t nest = writer_.begin_nest(type);
    writer_.put(NFTA_DATA_VALUE, bytes);
    writer_.end_nest(nest);
  }

  std::string put_counter(const Operation& operation) {
    begin(NFT_MSG_NEWOBJ, NLM_F_CREATE);
    name_counter(operation);
    // What it begins with: nothing.
    writer_.end_nest(writer_.begin_nest(NFTA_OBJ_DATA));
    writer_.end_message();
    return "";
  }

  void name_counter(const Operation& operation) {
    writer_.put_string(NFTA_OBJ_TABLE, operation.table);
    writer_.put_string(NFTA_OBJ_NAME, operation.counter);
    writer_.put_u32(NFTA_OBJ_TYPE, NFT_OBJECT_COUNTER);
  }

  std::string put_flush(const Operation& operation) {
    if (operation.set.empty() == operation.chain.empty()) return "a flush names a chain or a set";
    if (!operation.set.empty()) {
      begin(NFT_MSG_DELSETELEM, 0);
      writer_.put_string(NFTA_SET_ELEM_LIST_TABLE, operation.table);
      writer_.put_string(NFTA_SET_ELEM_LIST_SET, operation.set);
    } else {
      begin(NFT_MSG_DELRULE, 0);
      writer_.put_string(NFTA_RULE_TABLE, operation.table);
      writer_.put_string(NFTA_RULE_CHAIN, operation.chain);
    }
    writer_.end_message();
    return "";
  }

  std::string put_removal(const Operation& operation, const Remove& removal) {
    if (removal.rule != 0) {
      if (operation.chain.empty()) return "a rule is removed from a chain";
      begin(NFT_MSG_DELRULE, 0);
      writer_.put_string(NFTA_RULE_TABLE, operation.table);
      writer_.put_string(NFTA_RULE_CHAIN, operation.chain);
      writer_.put_u64(NFTA_RULE_HANDLE, removal.rule);
    } else if (!operation.counter.empty()) {
      begin(NFT_MSG_DELOBJ, 0);
      name_counter(operation);
    } else if (!operation.set.empty()) {
      begin(NFT_MSG_DELSET, 0);
      writer_.put_string(NFTA_SET_TABLE, operation.table);
      writer_.put_string(NFTA_SET_NAME, operation.set);
    } else if (!operation.chain.empty()) {
      begin(NFT_MSG_DELCHAIN, 0);
      writer_.put_string(NFTA_CHAIN_TABLE, operation.table);
      writer_.put_string(NFTA_CHAIN_NAME, operation.chain);
    } else {
      begin(NFT_MSG_DELTABLE, 0);
      writer_.put_string(NFTA_TABLE_NAME, operation.table);
    }
    writer_.end_message();
    return "";
  }

  netlink::Writer writer_;
  std::uint32_t sequence_;
  const std::optional<std::uint32_t> generation_;
  std::uint32_t operation_ = 0;
  std::size_t last_ = 0;
  Batch batch_;
};

}  // namespace

Batch encode(const Plan& plan, std::uint32_t first, std::optional<std::uint32_t> generation) { return Encoder(first, generation).run(plan); }

}  // namespace holdfast::nft
