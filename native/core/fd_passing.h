#pragma once

#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "unique_fd.h"

namespace holdfast {

/// Two ends of a unix stream socket, close-on-exec.
struct Channel {
  net::UniqueFd ours;
  net::UniqueFd theirs;
};

/// 0 or the negative errno.
int open_channel(Channel& channel) noexcept;

struct Parcel {
  std::string text;
  std::vector<net::UniqueFd> fds;
};

/// As many as one message carries (SCM_MAX_FD of net/scm.h is 253).
constexpr std::size_t kMostPassed = 250;

/// Sends `text` (at most 1 MiB) with up to `kMostPassed` descriptors, which stay open here, by SCM_RIGHTS (unix(7)). 0 or the negative errno; -ETIMEDOUT when the
/// other side takes nothing for that long.
int send_parcel(int channel, const std::string& text, std::span<const int> fds, std::chrono::milliseconds patience) noexcept;

/// The next one. 0 or the negative errno: -ETIMEDOUT, -EPIPE when the other side has closed, -EBADMSG when it is none, -EMFILE when not all of its
/// descriptors could be had here.
int receive_parcel(int channel, Parcel& parcel, std::chrono::milliseconds patience);

}  // namespace holdfast
