#include "process.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>

#include <cerrno>

#include "unique_fd.h"

namespace holdfast {

int lock_file(const std::string& path) noexcept {
  net::UniqueFd fd(::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  if (!fd) return -errno;
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) return -errno;
  return fd.release();
}

bool peer_uid(int fd, uid_t& uid) noexcept {
  int domain = 0;
  socklen_t size = sizeof domain;
  if (::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0) return false;
  // Other sockets answer too, with nobody's ids.
  if (domain != AF_UNIX) return errno = EAFNOSUPPORT, false;
  ucred peer{};
  size = sizeof peer;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
  uid = peer.uid;
  return true;
}

}  // namespace holdfast
