#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::dns {

using Bytes = std::vector<std::uint8_t>;

/// `a.test` on the wire's form.
inline std::string wire_name(std::string_view text) {
  std::string name;
  while (!text.empty()) {
    const std::string_view label = text.substr(0, text.find('.'));
    name.push_back(static_cast<char>(label.size()));
    name += label;
    text.remove_prefix(std::min(text.size(), label.size() + 1));
  }
  name.push_back('\0');
  return name;
}

/// A message with one question of class IN, for the sections' bytes to be put behind it.
inline Bytes message_of(std::uint16_t id, std::uint16_t flags, std::string_view name, std::uint8_t type, std::uint8_t answers = 0, std::uint8_t additional = 0) {
  constexpr std::size_t kHead = 12;
  const std::string wire = wire_name(name);
  Bytes bytes{static_cast<std::uint8_t>(id >> 8), static_cast<std::uint8_t>(id), static_cast<std::uint8_t>(flags >> 8), static_cast<std::uint8_t>(flags),
              0, 1, 0, answers, 0, 0, 0, additional};
  bytes.resize(kHead + wire.size() + 4);
  std::copy(wire.begin(), wire.end(), bytes.begin() + kHead);
  bytes[kHead + wire.size() + 1] = type;
  bytes[kHead + wire.size() + 3] = 1;
  return bytes;
}

/// An address of the question's name, TTL 60.
inline void add_address(Bytes& bytes, std::uint8_t last) { bytes.insert(bytes.end(), {0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, last}); }

inline void add_opt(Bytes& bytes, std::uint16_t payload, std::uint8_t version = 0) {
  bytes.insert(bytes.end(), {0, 0, 41, static_cast<std::uint8_t>(payload >> 8), static_cast<std::uint8_t>(payload), 0, version, 0, 0, 0, 0});
}

}  // namespace holdfast::dns
