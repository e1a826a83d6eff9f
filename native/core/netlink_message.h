#pragma once

#include <linux/netlink.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::netlink {

using Bytes = std::vector<std::uint8_t>;

/// An attribute's length is 16 bits wide, its own header of 4 bytes included (netlink(7)).
constexpr std::size_t kLargestAttribute = 0xffff;

/// Appends messages and their attributes to one buffer. Numbers are in network order, as nf_tables has them.
class Writer {
 public:
  /// Begins a message; what follows is in it until `end_message`. `body` is the family's own header.
  void begin_message(std::uint16_t type, std::uint16_t flags, std::uint32_t sequence, std::span<const std::uint8_t> body);
  void end_message() noexcept;

  void put(std::uint16_t type, std::span<const std::uint8_t> value);
  void put_u8(std::uint16_t type, std::uint8_t value);
  void put_u16(std::uint16_t type, std::uint16_t value);
  void put_u32(std::uint16_t type, std::uint32_t value);
  void put_u64(std::uint16_t type, std::uint64_t value);
  /// With the NUL at its end.
  void put_string(std::uint16_t type, std::string_view text);

  /// Where the nested attribute begins, for `end_nest`.
  std::size_t begin_nest(std::uint16_t type);
  void end_nest(std::size_t start) noexcept;

  std::size_t size() const noexcept { return bytes_.size(); }
  /// Whether an attribute did not fit its length: the buffer must not be sent.
  bool overflowed() const noexcept { return overflowed_; }
  Bytes take() noexcept { return std::move(bytes_); }

 private:
  void close_attribute(std::size_t start) noexcept;

  Bytes bytes_;
  std::size_t message_ = 0;
  bool overflowed_ = false;
};

struct Message {
  nlmsghdr header;
  std::span<const std::uint8_t> body;
};

struct Attribute {
  std::uint16_t type;
  std::span<const std::uint8_t> value;

  std::uint32_t u32() const noexcept;
  std::uint64_t u64() const noexcept;
  /// Up to the first NUL.
  std::string text() const;
};

/// Takes the next message off `rest`; nothing at its end and where a length is wrong (then `rest` is not empty).
std::optional<Message> next_message(std::span<const std::uint8_t>& rest) noexcept;
/// The same with attributes. The flags for nested and byte order are not in `type`.
std::optional<Attribute> next_attribute(std::span<const std::uint8_t>& rest) noexcept;
/// The first attribute of that type.
std::optional<Attribute> find_attribute(std::span<const std::uint8_t> attributes, std::uint16_t type) noexcept;

}  // namespace holdfast::netlink
