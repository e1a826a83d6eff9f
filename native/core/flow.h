#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "counters.h"

namespace holdfast::proxy {

/// One direction of a connection: bytes of a source socket on their way to a sink socket, both edge-triggered. Holds memory only while
/// the sink does not take what was read, never more than one read; meanwhile nothing more is read.
class Flow {
 public:
  enum class State : std::uint8_t {
    waiting,        ///< nothing to do before the next event
    unfinished,     ///< the budget is used up; no event will come for what is left
    ended,          ///< the source ended its stream and the sink's kernel has every byte
    source_failed,  ///< likewise, but the source ended by a reset or an error
    sink_failed     ///< the sink takes nothing any more
  };

  /// The source has bytes, or its end. `until_end`: no further event may come for what is behind the bytes, so read on to the end.
  void source_ready(bool until_end) noexcept {
    readable_ = true;
    until_end_ |= until_end;
  }
  void sink_ready() noexcept { blocked_ = false; }
  /// The source is reset; what it sent before is still read.
  void source_broke() noexcept;
  bool broken() const noexcept { return broken_; }

  /// Moves bytes until there is nothing to do, or `budget` bytes were read.
  State pump(int source, int sink, std::span<std::uint8_t> scratch, std::size_t budget, Counter& bytes);

 private:
  /// False when the sink failed.
  bool write(int sink, const std::uint8_t* data, std::size_t size, Counter& bytes);
  /// False when the sink failed or takes no more for now.
  bool flush(int sink, Counter& bytes);
  std::size_t read(int source, std::span<std::uint8_t> scratch) noexcept;

  State state_ = State::waiting;
  bool readable_ = false;
  bool until_end_ = false;
  bool blocked_ = false;
  bool broken_ = false;
  bool at_end_ = false;
  std::uint32_t pending_from_ = 0;
  std::uint32_t pending_size_ = 0;
  std::unique_ptr<std::uint8_t[]> pending_;
};

}  // namespace holdfast::proxy
