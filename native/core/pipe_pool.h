#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "unique_fd.h"

namespace holdfast::proxy {

/// A pipe, and how many bytes are in it.
struct Pipe {
  net::UniqueFd read_end;
  net::UniqueFd write_end;
  std::size_t capacity = 0;
  std::size_t bytes = 0;
};

/// One worker's pipes. A direction holds one only while bytes are in it, so a few serve any number of connections.
class PipePool {
 public:
  /// At most `most` exist at a time.
  explicit PipePool(std::size_t most) noexcept : most_(most) {}

  /// An empty one; null when all are in use or none can be made: bytes are copied then.
  std::unique_ptr<Pipe> take() noexcept;
  /// One that still holds bytes is closed.
  void give_back(std::unique_ptr<Pipe> pipe) noexcept;

 private:
  const std::size_t most_;
  std::size_t made_ = 0;
  std::vector<std::unique_ptr<Pipe>> free_;
};

}  // namespace holdfast::proxy
