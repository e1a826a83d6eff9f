#include "nft_socket.h"

#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "nft_encoder.h"

namespace holdfast::nft {
namespace {

/// Room for the kernel's answers, and for batches until one is larger.
constexpr int kBuffer = 8 * 1024 * 1024;
/// What a datagram takes of the sending buffer beside its bytes is less.
constexpr std::size_t kOverhead = 64 * 1024;
/// The kernel sends a dump in datagrams of up to 32 KiB, larger only for larger readers.
constexpr std::size_t kReceived = 64 * 1024;
constexpr int kDumps = 5;

std::uint16_t request_of(ObjectKind kind) noexcept {
  switch (kind) {
    case ObjectKind::table: return NFT_MSG_GETTABLE;
    case ObjectKind::chain: return NFT_MSG_GETCHAIN;
    case ObjectKind::rule: return NFT_MSG_GETRULE;
    case ObjectKind::set: return NFT_MSG_GETSET;
    case ObjectKind::element: return NFT_MSG_GETSETELEM;
  }
  return NFT_MSG_GETTABLE;
}

}  // namespace

int Socket::open() {
  fd_.reset(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER));
  if (!fd_) return -errno;
  sockaddr_nl any{};
  any.nl_family = AF_NETLINK;
  if (::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any) != 0) return -errno;
  const int on = 1;
  const int size = kBuffer;
  // The kernel answers at once; this is for the case that it does not.
  const timeval patience{5, 0};
  ::setsockopt(fd_.get(), SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof on);
  ::setsockopt(fd_.get(), SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof on);
  ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size);
  ::setsockopt(fd_.get(), SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size);
  ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  buffer_.resize(kReceived);
  return 0;
}

int Socket::send(const Bytes& bytes) {
  sockaddr_nl kernel{};
  kernel.nl_family = AF_NETLINK;
  const auto try_once = [&] {
    ssize_t sent;
    do sent = ::sendto(fd_.get(), bytes.data(), bytes.size(), 0, reinterpret_cast<const sockaddr*>(&kernel), sizeof kernel);
    while (sent < 0 && errno == EINTR);
    return sent < 0 ? -errno : 0;
  };
  const int error = try_once();
  // The kernel doubles the number, and takes at most half of the greatest.
  if (error != -EMSGSIZE || bytes.size() > INT_MAX / 2 - kOverhead) return error;
  const int size = static_cast<int>(bytes.size() + kOverhead);
  if (::setsockopt(fd_.get(), SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size) != 0) return error;
  const int again = try_once();
  const int usual = kBuffer;
  ::setsockopt(fd_.get(), SOL_SOCKET, SO_SNDBUFFORCE, &usual, sizeof usual);
  return again;
}

std::int64_t Socket::receive(int flags) {
  for (;;) {
    const ssize_t size = ::recv(fd_.get(), buffer_.data(), buffer_.size(), flags | MSG_TRUNC);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return -errno;
    return static_cast<std::size_t>(size) > buffer_.size() ? -EMSGSIZE : size;
  }
}

Outcome Socket::apply(const Plan& plan) {
  const std::uint32_t first = sequence_;
  const Batch batch = encode(plan, first);
  if (!batch.problem.empty()) return {-EINVAL, batch.operations.back(), batch.problem};
  if (batch.operations.empty()) return {};
  const auto messages = static_cast<std::uint32_t>(batch.operations.size());
  sequence_ += messages + 2;
  if (const int error = send(batch.bytes); error != 0) return {error, -1, "send the batch"};
  // The batch was worked on within the call: every answer is there.
  Answers answers;
  bool lost = false;
  for (;;) {
    const std::int64_t size = receive(MSG_DONTWAIT);
    if (size == -EAGAIN) break;
    if (size == -ENOBUFS) lost = true;
    else if (size <= 0) return {static_cast<int>(size < 0 ? size : -EIO), -1, "receive the answer"};
    else if (!read_answers(std::span(buffer_).first(static_cast<std::size_t>(size)), answers)) return {-EPROTO, -1, "read the answer"};
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
  writer.end_message();
  return send(writer.take());
}

Outcome Socket::dump_once(ObjectKind kind, const std::string& table, const std::string& set, Dump& dump) {
  const std::uint32_t sequence = sequence_++;
  if (const int error = ask(request_of(kind), NLM_F_DUMP, table, set, sequence); error != 0) return {error, -1, "ask for a dump"};
  while (!dump.ended) {
    const std::int64_t size = receive(0);
    if (size <= 0) return {static_cast<int>(size < 0 ? size : -EIO), -1, "receive a dump"};
    if (!read_dump(std::span(buffer_).first(static_cast<std::size_t>(size)), sequence, dump)) return {-EPROTO, -1, "read a dump"};
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
  for (;;) {
    const std::int64_t size = receive(0);
    if (size <= 0) return {static_cast<int>(size < 0 ? size : -EIO), -1, "receive the generation"};
    const auto datagram = std::span<const std::uint8_t>(buffer_).first(static_cast<std::size_t>(size));
    Answers answers;
    if (const auto found = read_generation(datagram, sequence)) return id = *found, Outcome{};
    if (!read_answers(datagram, answers)) return {-EPROTO, -1, "read the generation"};
    if (answers.error_sequence == sequence && answers.error != 0) return {answers.error, -1, answers.text};
  }
}

}  // namespace holdfast::nft
