#pragma once

#include <string>

#include "conntrack_entry.h"
#include "netlink_socket.h"

namespace holdfast::conntrack {

/// What became of the entries that a call was about.
struct Tally {
  /// 0, or the negative errno of the first that the kernel refused, or of the call as a whole.
  int error = 0;
  std::string text;
  std::uint32_t done = 0;
  /// They were gone, or another entry had taken their place, which was left as it was.
  std::uint32_t gone = 0;
  std::uint32_t failed = 0;
};

/// The connections that the kernel tracks in the network namespace of the thread that calls. Needs CAP_NET_ADMIN. One thread at a time.
class Table {
 public:
  /// 0 or the negative errno. Once.
  int open() { return socket_.open(); }

  /// Appends a row (conntrack_row.h) for each entry that matches. An entry may be there twice, or be missing, when it moved meanwhile.
  /// 0 or the negative errno.
  int list(const Filter& filter, Bytes& rows);

  /// Each by its id and its reply tuple, never by a tuple alone.
  Tally remove(const std::vector<Entry>& entries);

  /// Sets the bits of `mask` in the mark of each. ctnetlink does not compare ids here: each is read again afterwards, and another entry that has the
  /// reply tuple by then gets the bits cleared.
  Tally mark(const std::vector<Entry>& entries, std::uint32_t mark, std::uint32_t mask);

  /// Messages in the last `list`, before it was matched here: what the kernel's own filters left.
  std::uint32_t received() const noexcept { return received_; }

 private:
  int list_once(const Filter& filter, bool by_tuple, Bytes& rows);
  int remove_some(std::span<const Entry> entries, Tally& tally);
  int mark_some(std::span<const Entry> entries, std::uint32_t mark, std::uint32_t mask, Tally& tally);
  int clear(std::span<const Entry> entries, std::uint32_t mask);
  /// Sends, and gives every message of the answers to `take` until that of the sequence number `last` came.
  template <typename Take>
  int talk(const Bytes& request, std::uint32_t last, Take take);

  netlink::Socket socket_;
  std::uint32_t sequence_ = 1;
  std::uint32_t received_ = 0;
};

}  // namespace holdfast::conntrack
