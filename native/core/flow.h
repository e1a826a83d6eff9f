#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "counters.h"
#include "pipe_pool.h"

namespace holdfast::proxy {

/// What a worker lends to the direction that it pumps.
struct PumpAids {
  std::span<std::uint8_t> scratch;
  PipePool& pipes;
};

/// One direction of a connection: bytes of a source socket on their way to a sink socket, both edge-triggered. Holds memory or a pipe only
/// while the sink does not take what was read, never more than one read; meanwhile nothing more is read.
///
/// Bytes are copied at first, and spliced through a pipe once they have turned out to be many and to come in bulk.
class Flow {
 public:
  enum class State : std::uint8_t {
    waiting,        ///< nothing to do before the next event
    unfinished,     ///< the budget is used up; no event will come for what is left
    ended,          ///< the source ended its stream and the sink's kernel has every byte
    source_failed,  ///< likewise, but the source ended by a reset or an error
    sink_failed     ///< the sink takes nothing any more
  };

  /// Whether the sink sends small pieces at once (TCP_NODELAY). The first is never held back, so the call is saved until there is a second.
  enum class Promptness : std::uint8_t { at_second_send, inherited };

  explicit Flow(Promptness promptness) noexcept : prompt_(promptness == Promptness::inherited) {}

  /// The source has bytes, or its end. `until_end`: no further event may come for what is behind the bytes, so read on to the end.
  void source_ready(bool until_end) noexcept {
    readable_ = true;
    until_end_ |= until_end;
  }
  void sink_ready() noexcept { blocked_ = false; }
  /// The source is reset; what it sent before is still read.
  void source_broke() noexcept;
  bool broken() const noexcept { return broken_; }
  /// The sink has to announce when it takes more.
  bool blocked() const noexcept { return blocked_; }

  /// Bytes that go before what is read; before the first `pump`. The first `uncounted` are not the source's.
  void preload(std::span<const std::uint8_t> bytes, std::size_t uncounted);

  /// Moves bytes until there is nothing to do, or `budget` bytes were read.
  State pump(int source, int sink, const PumpAids& aids, std::size_t budget, Counter& bytes);
  /// No more will be pumped.
  void drop(PipePool& pipes) noexcept;

 private:
  bool holds() const noexcept { return pending_ || pipe_; }
  /// False when the sink failed or takes no more for now.
  bool flush(int sink, PipePool& pipes, Counter& bytes);
  bool flush_memory(int sink, Counter& bytes);
  bool flush_pipe(int sink, PipePool& pipes, Counter& bytes);
  void fill_memory(int source, int sink, std::span<std::uint8_t> scratch, std::size_t& budget, Counter& bytes);
  bool fill_pipe(int source, PipePool& pipes, std::size_t& budget);
  void be_prompt(int sink) noexcept;
  void keep(const std::uint8_t* data, std::size_t size);
  void sink_failed() noexcept;
  /// `error` 0 is the stream's end.
  void nothing_read(int error) noexcept;

  State state_ = State::waiting;
  bool readable_ : 1 = false;
  bool until_end_ : 1 = false;
  bool blocked_ : 1 = false;
  bool broken_ : 1 = false;
  bool at_end_ : 1 = false;
  bool bulk_ : 1 = false;
  bool sent_ : 1 = false;
  bool prompt_ : 1;
  std::uint16_t uncounted_ = 0;
  /// Copied so far, as far as that matters.
  std::uint32_t copied_ = 0;
  std::uint32_t pending_from_ = 0;
  std::uint32_t pending_size_ = 0;
  std::unique_ptr<std::uint8_t[]> pending_;
  std::unique_ptr<Pipe> pipe_;
};

}  // namespace holdfast::proxy
