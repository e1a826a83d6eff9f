#pragma once

#include <sys/types.h>

#include <string>

namespace holdfast {

/// Opens `path` (made when missing, mode 0600) and locks it for this process; the lock goes with the process, however that ends.
/// Returns the descriptor, or less than 0: the negative errno (-EWOULDBLOCK when another holds it).
int lock_file(const std::string& path) noexcept;

/// The user at the other end of a unix socket. False with errno set when it is none.
bool peer_uid(int fd, uid_t& uid) noexcept;

}  // namespace holdfast
