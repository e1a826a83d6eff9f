#pragma once

#include <cstdint>
#include <string>

namespace holdfast::runner {

/// Of what a stream said: its first `kept` bytes are in the file.
struct OutputCount {
  std::uint64_t kept = 0;
  std::uint64_t dropped = 0;
};

struct ExitRecord {
  /// -1 when a signal ended it or it did not start.
  int exit_code = -1;
  /// 0: none.
  int signal = 0;
  bool timed_out = false;
  bool cancelled = false;
  /// The errno's name; empty when it started.
  std::string start_error;
  OutputCount out;
  OutputCount err;
};

/// Text for the file `exit`, of at most kMaxExitRecord bytes; src/adapters/instruction/exit-record.ts reads it.
std::string encode(const ExitRecord& record);

constexpr std::size_t kMaxExitRecord = 512;

}  // namespace holdfast::runner
