#include "netlink_message.h"

#include <algorithm>
#include <array>

namespace holdfast::netlink {
namespace {

/// The header of an attribute: its length and its type.
constexpr std::size_t kAttributeHeader = 4;

template <typename Number>
std::array<std::uint8_t, sizeof(Number)> big_endian(Number value) noexcept {
  std::array<std::uint8_t, sizeof(Number)> bytes;
  for (std::size_t i = 0; i < sizeof value; ++i) bytes[i] = static_cast<std::uint8_t>(value >> (8 * (sizeof value - 1 - i)));
  return bytes;
}

std::uint64_t number(std::span<const std::uint8_t> bytes, std::size_t most) noexcept {
  std::uint64_t value = 0;
  for (const std::uint8_t byte : bytes.first(std::min(bytes.size(), most))) value = value << 8 | byte;
  return value;
}

}  // namespace

void Writer::begin_message(std::uint16_t type, std::uint16_t flags, std::uint32_t sequence, std::span<const std::uint8_t> body) {
  message_ = bytes_.size();
  const nlmsghdr header{0, type, flags, sequence, 0};
  const auto* from = reinterpret_cast<const std::uint8_t*>(&header);
  bytes_.insert(bytes_.end(), from, from + sizeof header);
  bytes_.insert(bytes_.end(), body.begin(), body.end());
  bytes_.resize(NLMSG_ALIGN(bytes_.size()));
}

void Writer::end_message() noexcept {
  const auto size = static_cast<std::uint32_t>(bytes_.size() - message_);
  std::memcpy(bytes_.data() + message_, &size, sizeof size);
}

void Writer::put(std::uint16_t type, std::span<const std::uint8_t> value) {
  const std::size_t start = begin_nest(type);
  bytes_.insert(bytes_.end(), value.begin(), value.end());
  close_attribute(start);
}

void Writer::put_u8(std::uint16_t type, std::uint8_t value) { put(type, {&value, 1}); }
void Writer::put_u16(std::uint16_t type, std::uint16_t value) { put(type, big_endian(value)); }
void Writer::put_u32(std::uint16_t type, std::uint32_t value) { put(type, big_endian(value)); }
void Writer::put_u64(std::uint16_t type, std::uint64_t value) { put(type, big_endian(value)); }

void Writer::put_string(std::uint16_t type, std::string_view text) {
  const std::size_t start = begin_nest(type);
  bytes_.insert(bytes_.end(), text.begin(), text.end());
  bytes_.push_back(0);
  close_attribute(start);
}

std::size_t Writer::begin_nest(std::uint16_t type) {
  const std::size_t start = bytes_.size();
  bytes_.resize(start + kAttributeHeader);
  std::memcpy(bytes_.data() + start + 2, &type, sizeof type);
  return start;
}

void Writer::end_nest(std::size_t start) noexcept {
  bytes_[start + 3] |= NLA_F_NESTED >> 8;
  close_attribute(start);
}

void Writer::close_attribute(std::size_t start) noexcept {
  const std::size_t size = bytes_.size() - start;
  if (size > kLargestAttribute) overflowed_ = true;
  const auto length = static_cast<std::uint16_t>(size);
  std::memcpy(bytes_.data() + start, &length, sizeof length);
  bytes_.resize(NLMSG_ALIGN(bytes_.size()));
}

std::uint32_t Attribute::u32() const noexcept { return static_cast<std::uint32_t>(number(value, 4)); }
std::uint64_t Attribute::u64() const noexcept { return number(value, 8); }
std::string Attribute::text() const { return {value.begin(), std::find(value.begin(), value.end(), 0)}; }

std::optional<Message> next_message(std::span<const std::uint8_t>& rest) noexcept {
  Message message;
  if (rest.size() < sizeof message.header) return std::nullopt;
  std::memcpy(&message.header, rest.data(), sizeof message.header);
  const std::size_t size = message.header.nlmsg_len;
  if (size < sizeof message.header || size > rest.size()) return std::nullopt;
  message.body = rest.subspan(sizeof message.header, size - sizeof message.header);
  rest = rest.subspan(std::min<std::size_t>(NLMSG_ALIGN(size), rest.size()));
  return message;
}

std::optional<Attribute> next_attribute(std::span<const std::uint8_t>& rest) noexcept {
  if (rest.size() < kAttributeHeader) return std::nullopt;
  std::uint16_t header[2];
  std::memcpy(header, rest.data(), sizeof header);
  const std::size_t size = header[0];
  if (size < kAttributeHeader || size > rest.size()) return std::nullopt;
  const Attribute attribute{static_cast<std::uint16_t>(header[1] & NLA_TYPE_MASK), rest.subspan(kAttributeHeader, size - kAttributeHeader)};
  rest = rest.subspan(std::min<std::size_t>(NLMSG_ALIGN(size), rest.size()));
  return attribute;
}

std::optional<Attribute> find_attribute(std::span<const std::uint8_t> attributes, std::uint16_t type) noexcept {
  while (const auto attribute = next_attribute(attributes)) {
    if (attribute->type == type) return attribute;
  }
  return std::nullopt;
}

}  // namespace holdfast::netlink
