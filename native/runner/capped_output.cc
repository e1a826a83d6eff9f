#include "capped_output.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace holdfast::runner {
namespace {

/// What a pipe holds.
constexpr std::size_t kChunk = 64 << 10;
constexpr int kChunksAtOnce = 16;

}  // namespace

CappedOutput::CappedOutput(net::UniqueFd pipe, net::UniqueFd file, std::uint64_t limit) noexcept
    : pipe_(std::move(pipe)), file_(std::move(file)), left_(limit) {}

void CappedOutput::pump() noexcept {
  char buffer[kChunk];
  for (int i = 0; i < kChunksAtOnce && pipe_; ++i) {
    const ssize_t length = ::read(pipe_.get(), buffer, sizeof buffer);
    if (length > 0) {
      keep(buffer, static_cast<std::size_t>(length));
    } else if (length == 0 || (errno != EAGAIN && errno != EINTR)) {
      pipe_.reset();
    } else {
      return;
    }
  }
}

void CappedOutput::keep(const char* bytes, std::size_t length) noexcept {
  std::size_t at = 0;
  const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(length, left_));
  while (at < wanted) {
    const ssize_t written = ::write(file_.get(), bytes + at, wanted - at);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      // What follows a gap would not be the stream any more.
      left_ = 0;
      break;
    }
    at += static_cast<std::size_t>(written);
  }
  left_ -= std::min<std::uint64_t>(left_, at);
  count_.kept += at;
  count_.dropped += length - at;
}

OutputCount CappedOutput::finish() noexcept {
  // What was written before the kill: a pipe holds at most 1 MiB. Somebody outside the task who holds it may go on for ever.
  if (!ended()) pump();
  if (count_.kept > 0 && ::fsync(file_.get()) != 0) count_ = {0, count_.dropped + count_.kept};
  return count_;
}

}  // namespace holdfast::runner
