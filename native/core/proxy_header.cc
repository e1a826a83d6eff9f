#include "proxy_header.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <string_view>

namespace holdfast::proxy {
namespace {

using State = ParsedHeader::State;
using Bytes = std::span<const std::uint8_t>;

constexpr std::string_view kStart1 = "PROXY ";
/// With the line's end.
constexpr std::size_t kMostVersion1 = 107;
constexpr std::array<std::uint8_t, 12> kSignature2 = {'\r', '\n', '\r', '\n', 0, '\r', '\n', 'Q', 'U', 'I', 'T', '\n'};
constexpr std::size_t kFixed2 = 16;

constexpr std::uint8_t kLocal = 0x20;
constexpr std::uint8_t kProxied = 0x21;
constexpr std::uint8_t kTcp4 = 0x11;
constexpr std::uint8_t kTcp6 = 0x21;

constexpr ParsedHeader kIncomplete{State::incomplete};
constexpr ParsedHeader kMalformed{State::malformed};

std::string_view text_of(Bytes bytes) noexcept { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

/// Cuts the next word off; words are separated by exactly one space.
std::string_view next_word(std::string_view& line) noexcept {
  const std::size_t end = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return word;
}

bool read_host(std::string_view word, net::Family family, net::SocketAddress& address) noexcept {
  char text[INET6_ADDRSTRLEN] = "";
  if (word.empty() || word.size() >= sizeof text || word.find(char{0}) != word.npos) return false;
  word.copy(text, word.size());
  address.family = family;
  return ::inet_pton(family == net::Family::ipv4 ? AF_INET : AF_INET6, text, address.bytes.data()) == 1;
}

/// Without sign or leading zero.
bool read_port(std::string_view word, std::uint16_t& port) noexcept {
  if (word.empty() || (word.size() > 1 && word[0] == '0')) return false;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), port);
  return error == std::errc() && end == word.data() + word.size();
}

ParsedHeader parse_1(Bytes bytes) noexcept {
  const std::string_view text = text_of(bytes.first(std::min(bytes.size(), kMostVersion1)));
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos) return text.size() == kMostVersion1 ? kMalformed : kIncomplete;
  if (end == 0 || text[end - 1] != '\r') return kMalformed;
  std::string_view line = text.substr(kStart1.size(), end - 1 - std::min(end - 1, kStart1.size()));
  const std::size_t size = end + 1;
  const std::string_view protocol = next_word(line);
  if (protocol == "UNKNOWN") return {State::complete, size};
  if (protocol != "TCP4" && protocol != "TCP6") return kMalformed;
  const net::Family family = protocol == "TCP4" ? net::Family::ipv4 : net::Family::ipv6;
  ProxyAddresses read;
  // The last word must end the line, so a space behind it is looked for first.
  if (line.ends_with(' ')) return kMalformed;
  const bool good = read_host(next_word(line), family, read.source) && read_host(next_word(line), family, read.destination) &&
                    read_port(next_word(line), read.source.port) && read_port(next_word(line), read.destination.port) && line.empty();
  if (!good) return kMalformed;
  return {State::complete, size, read};
}

void read_address_2(const std::uint8_t* at, net::Family family, net::SocketAddress& address) noexcept {
  address.family = family;
  std::copy_n(at, family == net::Family::ipv4 ? 4 : 16, address.bytes.begin());
}

std::uint16_t read_port_2(const std::uint8_t* at) noexcept { return static_cast<std::uint16_t>(at[0] << 8 | at[1]); }

ParsedHeader parse_2(Bytes bytes) noexcept {
  const std::uint8_t command = bytes.size() > 12 ? bytes[12] : kLocal;
  if (command != kLocal && command != kProxied) return kMalformed;
  if (bytes.size() < kFixed2) return kIncomplete;
  const std::uint8_t protocol = bytes[13];
  // Address family 0 to 3, transport 0 to 2.
  if (protocol >> 4 > 3 || (protocol & 15) > 2) return kMalformed;
  const std::size_t length = read_port_2(bytes.data() + 14);
  const std::size_t size = kFixed2 + length;
  if (size > kMostProxyHeader) return kMalformed;
  const bool usable = command == kProxied && (protocol == kTcp4 || protocol == kTcp6);
  const std::size_t host = protocol == kTcp4 ? 4 : 16;
  if (usable && length < 2 * host + 4) return kMalformed;
  if (bytes.size() < size) return kIncomplete;
  if (!usable) return {State::complete, size};
  const net::Family family = protocol == kTcp4 ? net::Family::ipv4 : net::Family::ipv6;
  const std::uint8_t* at = bytes.data() + kFixed2;
  ProxyAddresses read;
  read_address_2(at, family, read.source);
  read_address_2(at + host, family, read.destination);
  read.source.port = read_port_2(at + 2 * host);
  read.destination.port = read_port_2(at + 2 * host + 2);
  return {State::complete, size, read};
}

template <typename Start>
bool begins_like(Bytes bytes, const Start& start) noexcept {
  const std::size_t count = std::min(bytes.size(), start.size());
  return std::equal(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(count), start.begin(),
                    [](std::uint8_t byte, auto wanted) { return byte == static_cast<std::uint8_t>(wanted); });
}

std::size_t write_1(const ProxyAddresses& addresses, bool known, std::span<std::uint8_t, kMostWrittenHeader> out) noexcept {
  char* text = reinterpret_cast<char*>(out.data());
  if (!known) return static_cast<std::size_t>(std::snprintf(text, out.size(), "PROXY UNKNOWN\r\n"));
  const auto& [source, destination] = addresses;
  const int family = source.family == net::Family::ipv4 ? AF_INET : AF_INET6;
  char from[INET6_ADDRSTRLEN] = "";
  char to[INET6_ADDRSTRLEN] = "";
  ::inet_ntop(family, source.bytes.data(), from, sizeof from);
  ::inet_ntop(family, destination.bytes.data(), to, sizeof to);
  return static_cast<std::size_t>(std::snprintf(text, out.size(), "PROXY TCP%c %s %s %u %u\r\n", family == AF_INET ? '4' : '6', from, to,
                                                unsigned{source.port}, unsigned{destination.port}));
}

std::size_t write_2(const ProxyAddresses& addresses, bool known, std::span<std::uint8_t, kMostWrittenHeader> out) noexcept {
  const auto& [source, destination] = addresses;
  const std::size_t host = source.family == net::Family::ipv4 ? 4 : 16;
  const std::size_t length = known ? 2 * host + 4 : 0;
  auto* at = std::copy(kSignature2.begin(), kSignature2.end(), out.data());
  *at++ = known ? kProxied : kLocal;
  *at++ = !known ? 0 : host == 4 ? kTcp4 : kTcp6;
  *at++ = 0;
  *at++ = static_cast<std::uint8_t>(length);
  if (!known) return kFixed2;
  at = std::copy_n(source.bytes.begin(), host, at);
  at = std::copy_n(destination.bytes.begin(), host, at);
  for (const std::uint16_t port : {source.port, destination.port}) {
    *at++ = static_cast<std::uint8_t>(port >> 8);
    *at++ = static_cast<std::uint8_t>(port);
  }
  return kFixed2 + length;
}

}  // namespace

ParsedHeader parse_proxy_header(Bytes bytes) noexcept {
  const bool first = begins_like(bytes, kStart1);
  if (!first && !begins_like(bytes, kSignature2)) return kMalformed;
  if (bytes.size() < (first ? kStart1.size() : kSignature2.size())) return kIncomplete;
  return first ? parse_1(bytes) : parse_2(bytes);
}

std::size_t write_proxy_header(ProxyHeader version, const ProxyAddresses& addresses, std::span<std::uint8_t, kMostWrittenHeader> out) noexcept {
  const bool known = addresses.source.family == addresses.destination.family;
  return version == ProxyHeader::v1 ? write_1(addresses, known, out) : write_2(addresses, known, out);
}

}  // namespace holdfast::proxy
