#include "pipe_pool.h"

#include <fcntl.h>

namespace holdfast::proxy {
namespace {

/// Eight streams over 64 KiB pipes gain nothing over copying; 1 MiB is fs.pipe-max-size's default, and less is taken where that is less, or
/// where the user's share of pipe memory (fs.pipe-user-pages-soft) is used up.
constexpr int kLargest = 1 << 20;
constexpr int kSmallest = 1 << 16;

std::size_t enlarge(int fd) noexcept {
  for (int size = kLargest; size > kSmallest; size /= 2) {
    const int got = ::fcntl(fd, F_SETPIPE_SZ, size);
    if (got >= size) return static_cast<std::size_t>(got);
  }
  const int left = ::fcntl(fd, F_GETPIPE_SZ);
  return left > 0 ? static_cast<std::size_t>(left) : 0;
}

}  // namespace

std::unique_ptr<Pipe> PipePool::take() noexcept {
  if (!free_.empty()) {
    auto pipe = std::move(free_.back());
    free_.pop_back();
    return pipe;
  }
  if (made_ >= most_) return nullptr;
  int ends[2];
  if (::pipe2(ends, O_NONBLOCK | O_CLOEXEC) != 0) return nullptr;
  auto pipe = std::make_unique<Pipe>();
  pipe->read_end.reset(ends[0]);
  pipe->write_end.reset(ends[1]);
  pipe->capacity = enlarge(ends[1]);
  // The kernel gives pipes of two pages to those who have too many.
  if (pipe->capacity < kSmallest) return nullptr;
  ++made_;
  return pipe;
}

void PipePool::give_back(std::unique_ptr<Pipe> pipe) noexcept {
  if (pipe->bytes == 0) return free_.push_back(std::move(pipe));
  --made_;
}

}  // namespace holdfast::proxy
