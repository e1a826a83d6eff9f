#include "flow.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace holdfast::proxy {

void Flow::source_broke() noexcept {
  broken_ = true;
  source_ready(true);
  if (state_ == State::ended) state_ = State::source_failed;
}

Flow::State Flow::pump(int source, int sink, std::span<std::uint8_t> scratch, std::size_t budget, Counter& bytes) {
  if (state_ != State::waiting) return state_;
  for (;;) {
    if (pending_ && !flush(sink, bytes)) return state_;
    if (at_end_) return state_ = broken_ ? State::source_failed : State::ended;
    if (!readable_) return State::waiting;
    if (budget == 0) return State::unfinished;
    const std::size_t size = read(source, scratch);
    budget -= std::min(budget, size);
    if (size > 0 && !write(sink, scratch.data(), size, bytes)) return state_ = State::sink_failed;
  }
}

/// A short read means that the queue was empty: a later byte, or the end, makes a new event. So the read that would say EAGAIN is left
/// out, unless the end (or urgent data, at which the kernel stops a read) was already announced.
std::size_t Flow::read(int source, std::span<std::uint8_t> scratch) noexcept {
  ssize_t size;
  do {
    size = ::recv(source, scratch.data(), scratch.size(), 0);
  } while (size < 0 && errno == EINTR);
  if (size > 0) {
    if (static_cast<std::size_t>(size) < scratch.size() && !until_end_) readable_ = false;
    return static_cast<std::size_t>(size);
  }
  readable_ = false;
  if (size < 0 && errno != EAGAIN) broken_ = true;
  at_end_ = size == 0 || broken_;
  return 0;
}

bool Flow::write(int sink, const std::uint8_t* data, std::size_t size, Counter& bytes) {
  ssize_t sent;
  do {
    sent = ::send(sink, data, size, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0 && errno != EAGAIN) return false;
  const std::size_t done = sent < 0 ? 0 : static_cast<std::size_t>(sent);
  bytes.add(done);
  if (done == size) return true;
  // The kernel was asked for more than it takes, so it will announce when it takes more.
  blocked_ = true;
  pending_from_ = 0;
  pending_size_ = static_cast<std::uint32_t>(size - done);
  pending_ = std::make_unique_for_overwrite<std::uint8_t[]>(pending_size_);
  std::copy_n(data + done, pending_size_, pending_.get());
  return true;
}

bool Flow::flush(int sink, Counter& bytes) {
  if (blocked_) return false;
  const ssize_t sent = ::send(sink, pending_.get() + pending_from_, pending_size_, MSG_NOSIGNAL);
  if (sent < 0 && errno != EAGAIN && errno != EINTR) {
    state_ = State::sink_failed;
    pending_.reset();
    return false;
  }
  const auto done = sent < 0 ? 0U : static_cast<std::uint32_t>(sent);
  bytes.add(done);
  pending_from_ += done;
  pending_size_ -= done;
  blocked_ = pending_size_ > 0;
  if (!blocked_) pending_.reset();
  return !blocked_;
}

}  // namespace holdfast::proxy
