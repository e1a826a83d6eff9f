#include "nft_socket.h"

#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "nft_encoder.h"

namespace holdfast::nft {
namespace {

constexpr int kDumps = 5;

std::uint16_t request_of(ObjectKind kind) noexcept {
  switch (kind) {
    case ObjectKind::table: return NFT_MSG_GETTABLE;
    case ObjectKind::chain: return NFT_MSG_GETCHAIN;
    case ObjectKind::rule: return NFT_MSG_GETRULE;
    case ObjectKind::set: return NFT_MSG_GETSET;
    case ObjectKind::element: return NFT_MSG_GETSETELEM;
    case ObjectKind::counter: return NFT_MSG_GETOBJ;
  }
  return NFT_MSG_GETTABLE;
}

}  // namespace

Outcome Socket::apply(const Plan& plan, std::optional<std::uint32_t> generation) {
  Outcome outcome = send_batch(plan, generation);
  if (outcome.error == -EPERM || outcome.error == -EOPNOTSUPP || outcome.error == -ERESTART) outcome.text = explain(outcome, plan);
  return outcome;
}

/// These numbers mean several things; which, the table says.
std::string Socket::explain(const Outcome& outcome, const Plan& plan) {
  if (outcome.error == -ERESTART) return "the ruleset is not of the generation that this was planned for";
  if (outcome.operation < 0) return outcome.error == -EPERM ? "needs CAP_NET_ADMIN" : outcome.text;
  const Operation& operation = plan[static_cast<std::size_t>(outcome.operation)];
  std::vector<Object> tables;
  if (dump(ObjectKind::table, operation.table, "", tables).error != 0) tables.clear();
  const std::uint32_t owner = tables.empty() ? 0 : tables.front().owner;
  if (outcome.error == -EPERM) {
    return owner == 0 || owner == port() ? outcome.text : "the table " + operation.table + " is owned by another process (netlink port " + std::to_string(owner) + ")";
  }
  const auto* table = std::get_if<Table>(&operation.what);
  if (table == nullptr || table->flags == 0) return outcome.text;
  if (tables.empty()) return "the kernel does not know these flags of a table (persist: Linux 6.9)";
  return "the table " + operation.table + " was made without an owner: it can be owned only when it is removed and made again";
}

Outcome Socket::knows_flags(std::uint32_t flags, bool& known) {
  // What comes behind the table fails, so that no table is made; a kernel that does not know the flags fails before.
  const std::string name = "holdfast-probe-" + std::to_string(port());
  const Outcome outcome = send_batch({{name, "", "", Table{flags}}, {name, "none", "", Remove{}}}, std::nullopt);
  known = outcome.operation == 1;
  const bool answered = known || (outcome.operation == 0 && (outcome.error == -EOPNOTSUPP || outcome.error == -EINVAL));
  return answered ? Outcome{} : outcome;
}

Outcome Socket::send_batch(const Plan& plan, std::optional<std::uint32_t> generation) {
  const std::uint32_t first = sequence_;
  const Batch batch = encode(plan, first, generation);
  if (!batch.problem.empty()) return {-EINVAL, batch.operations.back(), batch.problem};
  if (batch.operations.empty()) return {};
  const auto messages = static_cast<std::uint32_t>(batch.operations.size());
  sequence_ += messages + 2;
  if (const int error = socket_.send(batch.bytes); error != 0) return {error, -1, "send the batch"};
  // The batch was worked on within the call: every answer is there.
  Answers answers;
  std::span<const std::uint8_t> datagram;
  bool lost = false;
  for (;;) {
    const int error = socket_.receive(datagram, MSG_DONTWAIT);
    if (error == -EAGAIN) break;
    if (error == -ENOBUFS) lost = true;
    else if (error != 0) return {error, -1, "receive the answer"};
    else if (!read_answers(datagram, answers)) return {-EPROTO, -1, "read the answer"};
  }
  if (answers.error != 0) {
    const std::uint32_t index = answers.error_sequence - first - 1;
    return {answers.error, index < messages ? std::int64_t{batch.operations[index]} : -1, answers.text};
  }
  if (lost) return {-ENOBUFS, -1, "the kernel gave more errors than fit"};
  const bool done = std::find(answers.done.begin(), answers.done.end(), first + messages) != answers.done.end();
  return done ? Outcome{} : Outcome{-EPROTO, -1, "the kernel did not answer"};
}

int Socket::ask(std::uint16_t type, std::uint16_t flags, const std::string& table, const std::string& set, std::uint32_t sequence) {
  netlink::Writer writer;
  const nfgenmsg header{static_cast<std::uint8_t>(table.empty() ? NFPROTO_UNSPEC : NFPROTO_INET), NFNETLINK_V0, 0};
  writer.begin_message(static_cast<std::uint16_t>(NFNL_SUBSYS_NFTABLES << 8 | type), NLM_F_REQUEST | flags, sequence,
                       {reinterpret_cast<const std::uint8_t*>(&header), sizeof header});
  // The table is attribute 1 of each kind, the set attribute 2 of elements (and of rules a chain, which we do not name).
  if (!table.empty()) writer.put_string(NFTA_SET_ELEM_LIST_TABLE, table);
  if (!set.empty()) writer.put_string(NFTA_SET_ELEM_LIST_SET, set);
  if (type == NFT_MSG_GETOBJ) writer.put_u32(NFTA_OBJ_TYPE, NFT_OBJECT_COUNTER);
  writer.end_message();
  return socket_.send(writer.take());
}

Outcome Socket::dump_once(ObjectKind kind, const std::string& table, const std::string& set, Dump& dump) {
  const std::uint32_t sequence = sequence_++;
  if (const int error = ask(request_of(kind), NLM_F_DUMP, table, set, sequence); error != 0) return {error, -1, "ask for a dump"};
  std::span<const std::uint8_t> datagram;
  while (!dump.ended) {
    if (const int error = socket_.receive(datagram, 0); error != 0) return {error, -1, "receive a dump"};
    if (!read_dump(datagram, sequence, dump)) return {-EPROTO, -1, "read a dump"};
  }
  return {dump.error, -1, dump.error == 0 ? "" : "dump"};
}

Outcome Socket::dump(ObjectKind kind, const std::string& table, const std::string& set, std::vector<Object>& objects) {
  for (int i = 0; i < kDumps; ++i) {
    Dump dump;
    Outcome outcome = dump_once(kind, table, set, dump);
    if (outcome.error != 0 && outcome.error != -EINTR) return outcome;
    if (outcome.error == -EINTR || dump.interrupted) continue;
    // Older kernels dump every table for some kinds, whatever is asked for.
    if (!table.empty()) std::erase_if(dump.objects, [&](const Object& one) { return one.table != table || one.family != NFPROTO_INET; });
    objects = std::move(dump.objects);
    return outcome;
  }
  return {-EINTR, -1, "the ruleset changed during each dump"};
}

Outcome Socket::generation(std::uint32_t& id) {
  const std::uint32_t sequence = sequence_++;
  if (const int error = ask(NFT_MSG_GETGEN, 0, "", "", sequence); error != 0) return {error, -1, "ask for the generation"};
  std::span<const std::uint8_t> datagram;
  for (;;) {
    if (const int error = socket_.receive(datagram, 0); error != 0) return {error, -1, "receive the generation"};
    Answers answers;
    if (const auto found = read_generation(datagram, sequence)) return id = *found, Outcome{};
    if (!read_answers(datagram, answers)) return {-EPROTO, -1, "read the generation"};
    if (answers.error_sequence == sequence && answers.error != 0) return {answers.error, -1, answers.text};
  }
}

}  // namespace holdfast::nft
