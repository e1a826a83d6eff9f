#include "dns_message.h"

#include <algorithm>

namespace holdfast::dns {
namespace {

/// A pointer goes back, at most to the header's end: so a name of 255 bytes follows this many at most.
constexpr std::size_t kMostPointers = 127;
constexpr std::size_t kLongestLabel = 63;

/// Every read says whether it was within the message.
class Reader {
 public:
  Reader(std::span<const std::uint8_t> bytes, std::size_t at) noexcept : bytes_(bytes), at_(at) {}

  std::size_t at() const noexcept { return at_; }
  std::size_t left() const noexcept { return bytes_.size() - at_; }

  bool skip(std::size_t count) noexcept {
    if (count > left()) return false;
    at_ += count;
    return true;
  }
  bool u16(std::uint16_t& value) noexcept {
    if (left() < 2) return false;
    value = get16(bytes_.data() + at_);
    at_ += 2;
    return true;
  }
  bool u32(std::uint32_t& value) noexcept {
    if (left() < 4) return false;
    value = get32(bytes_.data() + at_);
    at_ += 4;
    return true;
  }
  bool name(Name* name) noexcept;

 private:
  std::span<const std::uint8_t> bytes_;
  std::size_t at_;
};

/// Pointers lead to what stands before the name (RFC 1035, 4.1.4), each further back than the one before: there is no loop.
bool Reader::name(Name* name) noexcept {
  std::size_t at = at_;
  std::size_t limit = at_;
  std::size_t back = 0;
  std::size_t size = 1;
  for (std::size_t pointers = 0;;) {
    if (at >= bytes_.size()) return false;
    const std::size_t length = bytes_[at];
    if (length >= 0xc0) {
      if (at + 1 >= bytes_.size()) return false;
      const std::size_t target = (length - 0xc0) << 8 | bytes_[at + 1];
      if (back == 0) back = at + 2;
      if (target >= limit || target < kHeaderSize || ++pointers > kMostPointers) return false;
      limit = at = target;
      continue;
    }
    // 64 to 191: label types that RFC 6891, 5 has given up.
    if (length > kLongestLabel || length >= bytes_.size() - at) return false;
    if (length > 0 && (size += length + 1) > kMostNameBytes) return false;
    if (name != nullptr) name->append(bytes_.data() + at, length + 1);
    at += length + 1;
    if (length == 0) break;
  }
  at_ = back == 0 ? at : back;
  return true;
}

/// Names are read where RFC 1035 lets them be compressed, and in what came soon after (RFC 3597, 4).
bool read_data(Reader& in, std::uint16_t type, std::uint16_t record_class, std::size_t end) noexcept {
  const std::size_t length = end - in.at();
  if (record_class != kClassIn) return in.skip(length);
  switch (type) {
    case type::kNs:
    case type::kCname:
    case type::kPtr:
    case type::kDname:
      return in.name(nullptr);
    case type::kMx:
      return in.skip(2) && in.name(nullptr);
    case type::kSrv:
      return in.skip(6) && in.name(nullptr);
    case type::kSoa:
      return in.name(nullptr) && in.name(nullptr) && in.skip(20);
    case type::kA:
      return length == 4 && in.skip(4);
    case type::kAaaa:
      return length == 16 && in.skip(16);
    default:
      return in.skip(length);
  }
}

bool read_record(Reader& in, std::uint8_t section, Message& message, std::vector<Record>* records) {
  Record record{section, 0, 0, static_cast<std::uint32_t>(in.at()), 0, 0};
  std::uint32_t ttl;
  std::uint16_t length;
  Name name;
  if (!in.name(&name) || !in.u16(record.type) || !in.u16(record.record_class)) return false;
  record.ttl_at = static_cast<std::uint32_t>(in.at());
  if (!in.u32(ttl) || !in.u16(length) || length > in.left()) return false;
  const std::size_t end = in.at() + length;
  if (!read_data(in, record.type, record.record_class, end) || in.at() != end) return false;
  record.end = static_cast<std::uint32_t>(end);
  if (records != nullptr) records->push_back(record);
  if (record.type != type::kOpt) return true;
  if (section != 2 || message.edns || name.size() != 1) return false;
  message.edns = Edns{std::max<std::uint16_t>(512, record.record_class), static_cast<std::uint8_t>(ttl >> 16), (ttl & 0x8000) != 0};
  return true;
}

bool read_question(Reader& in, bool first, Message& message) noexcept {
  std::uint16_t type;
  std::uint16_t question_class;
  if (!in.name(first ? &message.name : nullptr) || !in.u16(type) || !in.u16(question_class)) return false;
  if (!first) return true;
  message.type = type;
  message.question_class = question_class;
  message.question_end = in.at();
  return true;
}

}  // namespace

void Name::append(const std::uint8_t* bytes, std::size_t length) noexcept {
  for (std::size_t i = 0; i < length; ++i) {
    const std::uint8_t byte = bytes[i];
    // A length byte is at most 63: below "A".
    bytes_[size_ + i] = static_cast<std::uint8_t>(byte - 'A') < 26 ? byte | 0x20 : byte;
  }
  size_ += length;
}

Form read_message(std::span<const std::uint8_t> bytes, Message& message, std::vector<Record>* records) {
  if (bytes.size() < kHeaderSize) return Form::no_header;
  message.id = get16(bytes.data());
  message.flags = get16(bytes.data() + 2);
  for (std::size_t i = 0; i < 4; ++i) message.counts[i] = get16(bytes.data() + 4 + 2 * i);
  Reader in(bytes, kHeaderSize);
  for (std::uint16_t i = 0; i < message.counts[0]; ++i) {
    if (!read_question(in, i == 0, message)) return Form::malformed;
  }
  for (std::uint8_t section = 0; section < 3; ++section) {
    for (std::uint16_t i = 0; i < message.counts[section + 1u]; ++i) {
      if (!read_record(in, section, message, records)) return Form::malformed;
    }
  }
  return in.left() == 0 ? Form::well_formed : Form::malformed;
}

}  // namespace holdfast::dns
