#pragma once

#include <cerrno>
#include <string>
#include <system_error>

namespace holdfast::runner {

/// The result of a system call, unless it failed: then a std::system_error that names `what`.
inline int checked(int result, const std::string& what) {
  if (result < 0) throw std::system_error(errno, std::generic_category(), what);
  return result;
}

/// "EACCES"; a number where it has no name.
std::string errno_name(int error);

/// Standard input, output and error are nobody's from here on.
void close_standard_streams();

}  // namespace holdfast::runner
