#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace holdfast::nft {

/// Someone has changed something in a table.
struct Change {
  /// NFPROTO_* of linux/netfilter.h; inet is 1.
  std::uint8_t family = 0;
  std::string table;
  /// The netlink port of the socket that did it; 0: the kernel itself, for example as a device has gone.
  std::uint32_t port = 0;
  /// The thread that did it, as far as the kernel has said: its number and its name (task_struct.comm), a process's own when it has one. 0 and "" until then.
  std::uint32_t process = 0;
  std::string command;
};

struct Changes {
  /// One for each table and port, however much was changed; at most `kMostChanges`.
  std::vector<Change> tables;
  /// Events were lost, or there were more tables: whatever one cares about is to be looked at.
  bool overrun = false;
};

constexpr std::size_t kMostChanges = 64;

/// Adds what a datagram of the group NFNLGRP_NFTABLES tells, but for what `own_port` did. False when the datagram is none of netlink's form.
bool read_changes(std::span<const std::uint8_t> datagram, std::uint32_t own_port, Changes& changes);

}  // namespace holdfast::nft
