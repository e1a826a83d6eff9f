#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace holdfast::dns {

constexpr std::size_t kHeaderSize = 12;
constexpr std::size_t kMostNameBytes = 255;
/// An OPT record without options (RFC 6891, 6.1.2).
constexpr std::size_t kOptSize = 11;

namespace type {
constexpr std::uint16_t kA = 1, kNs = 2, kCname = 5, kSoa = 6, kPtr = 12, kMx = 15, kTxt = 16, kAaaa = 28, kSrv = 33, kDname = 39, kOpt = 41, kIxfr = 251,
                        kAxfr = 252, kAny = 255;
}
constexpr std::uint16_t kClassIn = 1, kClassAny = 255;

/// BADVERS is an extended one: its upper bits stand in the OPT record.
enum class Rcode : std::uint16_t { noerror = 0, formerr = 1, servfail = 2, nxdomain = 3, notimp = 4, refused = 5, badvers = 16 };

namespace flag {
constexpr std::uint16_t kResponse = 0x8000, kAuthoritative = 0x0400, kTruncated = 0x0200, kRecursionDesired = 0x0100, kCheckingDisabled = 0x0010;
}

inline std::uint16_t get16(const std::uint8_t* at) noexcept { return static_cast<std::uint16_t>(at[0] << 8 | at[1]); }
inline std::uint32_t get32(const std::uint8_t* at) noexcept { return static_cast<std::uint32_t>(get16(at)) << 16 | get16(at + 2); }
inline void put16(std::uint8_t* at, std::size_t value) noexcept {
  at[0] = static_cast<std::uint8_t>(value >> 8);
  at[1] = static_cast<std::uint8_t>(value);
}
inline void put32(std::uint8_t* at, std::uint32_t value) noexcept {
  put16(at, value >> 16);
  put16(at + 2, value & 0xffff);
}

/// A name with its length bytes and the root's, in lower case (RFC 4343).
class Name {
 public:
  std::string_view view() const noexcept { return {reinterpret_cast<const char*>(bytes_.data()), size_}; }
  std::size_t size() const noexcept { return size_; }
  const std::uint8_t* data() const noexcept { return bytes_.data(); }

  /// `length` bytes, which may not make it longer than 255.
  void append(const std::uint8_t* bytes, std::size_t length) noexcept;
  void clear() noexcept { size_ = 0; }

 private:
  std::array<std::uint8_t, kMostNameBytes> bytes_;
  std::size_t size_ = 0;
};

/// Where a record stands in its message.
struct Record {
  /// 0 answer, 1 authority, 2 additional.
  std::uint8_t section;
  std::uint16_t type;
  std::uint16_t record_class;
  std::uint32_t begin;
  std::uint32_t ttl_at;
  std::uint32_t end;
};

/// What an OPT record says (RFC 6891).
struct Edns {
  /// At least 512.
  std::uint16_t payload;
  std::uint8_t version;
  bool dnssec_ok;
};

struct Message {
  std::uint16_t id = 0;
  std::uint16_t flags = 0;
  /// Questions, answers, authority, additional.
  std::array<std::uint16_t, 4> counts{};
  /// Of the first question, if there is one; `question_end` is where it ends.
  Name name;
  std::uint16_t type = 0;
  std::uint16_t question_class = 0;
  std::size_t question_end = kHeaderSize;
  std::optional<Edns> edns;

  bool is_response() const noexcept { return (flags & flag::kResponse) != 0; }
  std::uint8_t opcode() const noexcept { return flags >> 11 & 0xf; }
};

enum class Form : std::uint8_t { well_formed, malformed, no_header };

/// Reads a message from the network, as strictly as src/domain/dns/decode.ts does: names, lengths and pointers of all records are checked, nothing may
/// stand behind the end. Of what is malformed id and flags are there. `records` is told every record, when it is given.
Form read_message(std::span<const std::uint8_t> bytes, Message& message, std::vector<Record>* records = nullptr);

}  // namespace holdfast::dns
