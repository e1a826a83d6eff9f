#pragma once

#include "exit_record.h"
#include "unique_fd.h"

namespace holdfast::runner {

/// Empties one stream of the program into a file of limited size. What is more than the limit, or than the disk takes, is read all the same,
/// so that the program never waits, and counted.
class CappedOutput {
 public:
  /// `pipe` does not block.
  CappedOutput(net::UniqueFd pipe, net::UniqueFd file, std::uint64_t limit) noexcept;

  /// Less than 0 after its end.
  int fd() const noexcept { return pipe_.get(); }
  bool ended() const noexcept { return !pipe_; }
  /// Takes what is there, at most 1 MiB, so that a stream that never stops does not keep the deadline waiting.
  void pump() noexcept;
  /// Puts on the disk what was kept; what it refuses counts as dropped.
  OutputCount finish() noexcept;

 private:
  void keep(const char* bytes, std::size_t length) noexcept;

  net::UniqueFd pipe_;
  net::UniqueFd file_;
  std::uint64_t left_;
  OutputCount count_;
};

}  // namespace holdfast::runner
