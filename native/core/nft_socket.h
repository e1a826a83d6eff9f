#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "netlink_socket.h"
#include "nft_plan.h"
#include "nft_reply.h"

namespace holdfast::nft {

/// What came of a call: 0 or a negative errno.
struct Outcome {
  int error = 0;
  /// Which of the plan's operations it is about, -1 when it is about the whole.
  std::int64_t operation = -1;
  /// The kernel's words, or ours.
  std::string text;
};

/// The socket that owns our table (NFT_TABLE_F_OWNER): a table so made takes changes from this socket alone, and loses its owner when the
/// socket is closed. One thread at a time. Needs CAP_NET_ADMIN in the network namespace in which it was opened.
class Socket {
 public:
  /// 0 or the negative errno. Once.
  int open() { return socket_.open(); }
  /// Instead of `open`: the owning socket of another process, which has passed it (SCM_RIGHTS) and uses it no more. -EPROTOTYPE when it is none.
  int adopt(net::UniqueFd fd) { return socket_.adopt(std::move(fd)); }
  /// By which the kernel knows who changes something.
  std::uint32_t port() const noexcept { return socket_.port(); }
  int fd() const noexcept { return socket_.fd(); }

  /// All of the plan at once, or nothing: returns when the kernel has done it or refused it. EINVAL without a kernel's word: the plan is
  /// none. ENOBUFS: there were more errors than fit the buffer; nothing happened. EMSGSIZE: the batch is larger than any buffer.
  /// With the generation that it was planned for: -ERESTART, and nothing happens, when someone has changed the ruleset since.
  Outcome apply(const Plan& plan, std::optional<std::uint32_t> generation = std::nullopt);

  /// All objects of a kind in every family and table, or with `table` in ours (inet) of that name; `element` needs `set`. Begun again, up to
  /// 5 times, when the kernel says that something changed meanwhile; then EINTR.
  Outcome dump(ObjectKind kind, const std::string& table, const std::string& set, std::vector<Object>& objects);

  /// Whether the kernel knows these flags of a table: owner and persist (6) from Linux 6.9 on. Makes nothing.
  Outcome knows_flags(std::uint32_t flags, bool& known);

  /// A number that grows by one with each batch that anyone applies to the ruleset of the namespace.
  Outcome generation(std::uint32_t& id);

 private:
  Outcome send_batch(const Plan& plan, std::optional<std::uint32_t> generation);
  std::string explain(const Outcome& outcome, const Plan& plan);
  Outcome dump_once(ObjectKind kind, const std::string& table, const std::string& set, Dump& dump);
  int ask(std::uint16_t type, std::uint16_t flags, const std::string& table, const std::string& set, std::uint32_t sequence);

  netlink::Socket socket_;
  std::uint32_t sequence_ = 1;
};

}  // namespace holdfast::nft
