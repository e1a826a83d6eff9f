#pragma once

#include "conntrack_entry.h"

namespace holdfast::conntrack {

/// Requests of ctnetlink (linux/netfilter/nfnetlink_conntrack.h), each a message that is appended. `flags` are beside NLM_F_REQUEST.

/// All entries that the kernel's own filters let through; with `by_tuple` also those for a protocol and a single selector, which Linux has from 5.8
/// on and older kernels refuse or ignore. What comes is to be matched once more.
void put_dump(netlink::Writer& writer, const Filter& filter, bool by_tuple, std::uint32_t sequence);
/// By its id and its reply tuple: an entry that has taken its place stays, as far as it differs in either.
void put_delete(netlink::Writer& writer, const Entry& entry, std::uint16_t flags, std::uint32_t sequence);
/// The bits of `mask` become those of `mark`, of whatever entry has the reply tuple by now.
void put_mark(netlink::Writer& writer, const Entry& entry, std::uint32_t mark, std::uint32_t mask, std::uint32_t sequence);
/// Whatever entry has the reply tuple by now.
void put_get(netlink::Writer& writer, const Entry& entry, std::uint16_t flags, std::uint32_t sequence);

/// An entry of an answer: nothing when the message is none, or its tuples are not whole.
std::optional<Entry> read_entry(const netlink::Message& message) noexcept;

/// What the kernel answered, apart from entries.
struct Answer {
  std::uint32_t sequence = 0;
  /// 0 or the negative errno.
  int error = 0;
};

/// Of NLMSG_ERROR and NLMSG_DONE.
std::optional<Answer> read_answer(const netlink::Message& message) noexcept;

}  // namespace holdfast::conntrack
