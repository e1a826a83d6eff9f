#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>

namespace holdfast {

/// What a message from JavaScript is wrong for.
struct Malformed {
  std::string problem;
};

[[noreturn]] inline void fail(std::string problem) { throw Malformed{std::move(problem)}; }

/// Reads a little-endian message of one of our codecs. Each call that finds too little throws Malformed.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::uint8_t> bytes) : rest_(bytes) {}

  std::uint8_t u8() { return take(1)[0]; }
  std::uint16_t u16() {
    const auto b = take(2);
    return static_cast<std::uint16_t>(b[0] | b[1] << 8);
  }
  std::uint32_t u32() {
    const std::uint32_t low = u16();
    return low | static_cast<std::uint32_t>(u16()) << 16;
  }
  std::span<const std::uint8_t> take(std::size_t count) {
    if (rest_.size() < count) fail("truncated");
    const auto taken = rest_.first(count);
    rest_ = rest_.subspan(count);
    return taken;
  }
  /// Before anything is reserved for them: a count that the message cannot hold is refused.
  std::size_t count(std::size_t count, std::size_t size) const {
    if (rest_.size() / size < count) fail("truncated");
    return count;
  }
  bool empty() const { return rest_.empty(); }

 private:
  std::span<const std::uint8_t> rest_;
};

}  // namespace holdfast
