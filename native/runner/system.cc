#include "system.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstring>

#include "unique_fd.h"

namespace holdfast::runner {

std::string errno_name(int error) {
  const char* name = ::strerrorname_np(error);
  return name == nullptr ? std::to_string(error) : name;
}

void close_standard_streams() {
  const net::UniqueFd null(checked(::open("/dev/null", O_RDWR | O_CLOEXEC), "/dev/null"));
  for (int fd = 0; fd <= 2; ++fd) checked(::dup2(null.get(), fd), "dup2");
}

}  // namespace holdfast::runner
