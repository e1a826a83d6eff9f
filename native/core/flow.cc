#include "flow.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace holdfast::proxy {
namespace {

/// A pipe costs two calls more than a copy, which a short exchange never gets back.
constexpr std::uint32_t kCopiedFirst = 256 * 1024;
/// A stream whose reads bring less than this is no longer bulk: copying is cheaper again.
constexpr std::size_t kLeastBulk = 16 * 1024;

template <typename Call>
ssize_t uninterrupted(Call call) noexcept {
  ssize_t result;
  do {
    result = call();
  } while (result < 0 && errno == EINTR);
  return result;
}

}  // namespace

void Flow::source_broke() noexcept {
  broken_ = true;
  source_ready(true);
  if (state_ == State::ended) state_ = State::source_failed;
}

void Flow::preload(std::span<const std::uint8_t> bytes, std::size_t uncounted) {
  keep(bytes.data(), bytes.size());
  uncounted_ = static_cast<std::uint16_t>(uncounted);
}

Flow::State Flow::pump(int source, int sink, const PumpAids& aids, std::size_t budget, Counter& bytes) {
  while (state_ == State::waiting) {
    if (holds() && !flush(sink, aids.pipes, bytes)) break;
    if (at_end_) {
      state_ = broken_ ? State::source_failed : State::ended;
      break;
    }
    if (!readable_) break;
    if (budget == 0) return State::unfinished;
    if (bulk_ && fill_pipe(source, aids.pipes, budget)) continue;
    fill_memory(source, sink, aids.scratch, budget, bytes);
  }
  return state_;
}

void Flow::drop(PipePool& pipes) noexcept {
  pending_.reset();
  if (pipe_) pipes.give_back(std::move(pipe_));
}

/// A short read means that the queue was empty: a later byte, or the end, makes a new event. So the read that would say EAGAIN is left
/// out, unless the end (or urgent data, at which the kernel stops a read) was already announced.
void Flow::fill_memory(int source, int sink, std::span<std::uint8_t> scratch, std::size_t& budget, Counter& bytes) {
  const ssize_t size = uninterrupted([&] { return ::recv(source, scratch.data(), scratch.size(), 0); });
  if (size <= 0) return nothing_read(size < 0 ? errno : 0);
  const auto got = static_cast<std::size_t>(size);
  const bool full = got == scratch.size();
  if (!full && !until_end_) readable_ = false;
  budget -= std::min(budget, got);
  if (copied_ < kCopiedFirst) copied_ += static_cast<std::uint32_t>(got);
  bulk_ = full && copied_ >= kCopiedFirst;
  be_prompt(sink);
  const ssize_t sent = uninterrupted([&] { return ::send(sink, scratch.data(), got, MSG_NOSIGNAL); });
  if (sent < 0 && errno != EAGAIN) return sink_failed();
  const std::size_t done = sent < 0 ? 0 : static_cast<std::size_t>(sent);
  bytes.add(done);
  if (done == got) return;
  // The kernel was asked for more than it takes, so it will announce when it takes more.
  blocked_ = true;
  keep(scratch.data() + done, got - done);
}

/// False when the bytes have to be copied after all: no pipe, or nothing that can be spliced (the end and what is behind urgent data are a
/// read's to find).
bool Flow::fill_pipe(int source, PipePool& pipes, std::size_t& budget) {
  pipe_ = pipes.take();
  if (!pipe_) return bulk_ = false;
  const ssize_t got = uninterrupted([&] {
    return ::splice(source, nullptr, pipe_->write_end.get(), nullptr, pipe_->capacity, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
  });
  if (got <= 0) {
    const bool empty = got < 0 && errno == EAGAIN && !until_end_;
    pipes.give_back(std::move(pipe_));
    if (empty) readable_ = false;
    bulk_ = empty;
    return empty;
  }
  pipe_->bytes = static_cast<std::size_t>(got);
  budget -= std::min(budget, pipe_->bytes);
  bulk_ = pipe_->bytes >= kLeastBulk;
  return true;
}

bool Flow::flush(int sink, PipePool& pipes, Counter& bytes) {
  if (blocked_) return false;
  return pipe_ ? flush_pipe(sink, pipes, bytes) : flush_memory(sink, bytes);
}

bool Flow::flush_memory(int sink, Counter& bytes) {
  be_prompt(sink);
  const ssize_t sent = uninterrupted([&] { return ::send(sink, pending_.get() + pending_from_, pending_size_, MSG_NOSIGNAL); });
  if (sent < 0 && errno != EAGAIN) return sink_failed(), false;
  const auto done = sent < 0 ? 0U : static_cast<std::uint32_t>(sent);
  const auto skipped = std::min<std::uint32_t>(uncounted_, done);
  uncounted_ = static_cast<std::uint16_t>(uncounted_ - skipped);
  bytes.add(done - skipped);
  pending_from_ += done;
  pending_size_ -= done;
  blocked_ = pending_size_ > 0;
  if (!blocked_) pending_.reset();
  return !blocked_;
}

bool Flow::flush_pipe(int sink, PipePool& pipes, Counter& bytes) {
  while (pipe_->bytes > 0) {
    const ssize_t sent = uninterrupted([&] {
      return ::splice(pipe_->read_end.get(), nullptr, sink, nullptr, pipe_->bytes, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    });
    if (sent == 0 || (sent < 0 && errno != EAGAIN)) {
      pipes.give_back(std::move(pipe_));
      return sink_failed(), false;
    }
    if (sent < 0) {
      blocked_ = true;
      return false;
    }
    pipe_->bytes -= static_cast<std::size_t>(sent);
    bytes.add(static_cast<std::uint64_t>(sent));
  }
  pipes.give_back(std::move(pipe_));
  return true;
}

void Flow::be_prompt(int sink) noexcept {
  if (prompt_) return;
  if (!sent_) {
    sent_ = true;
    return;
  }
  const int on = 1;
  ::setsockopt(sink, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  prompt_ = true;
}

void Flow::keep(const std::uint8_t* data, std::size_t size) {
  pending_from_ = 0;
  pending_size_ = static_cast<std::uint32_t>(size);
  pending_ = std::make_unique_for_overwrite<std::uint8_t[]>(size);
  std::copy_n(data, size, pending_.get());
}

void Flow::sink_failed() noexcept {
  state_ = State::sink_failed;
  pending_.reset();
}

void Flow::nothing_read(int error) noexcept {
  readable_ = false;
  if (error != 0 && error != EAGAIN) broken_ = true;
  at_end_ = error == 0 || broken_;
}

}  // namespace holdfast::proxy
