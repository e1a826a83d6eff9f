#include "dns_codec.h"

#include <algorithm>
#include <unordered_set>

#include "byte_reader.h"

namespace holdfast::dns {
namespace {

constexpr std::uint32_t kMagic = 0x4e444648;  // "HFDN"
constexpr std::uint16_t kVersion = 1;
constexpr std::uint32_t kAsTheyWere = 0xffff'ffff;
/// The least that one of each takes.
constexpr std::size_t kApexSize = 3 + 17;
constexpr std::size_t kIdSize = 3;
constexpr std::size_t kGroupSize = 5;
constexpr std::size_t kNameSize = 3;
constexpr std::size_t kAnswerSize = 10;

class Reader : public ByteReader {
 public:
  using ByteReader::ByteReader;

  std::string id() {
    const auto bytes = take(u16());
    if (bytes.empty()) fail("an empty id");
    return {bytes.begin(), bytes.end()};
  }
  std::string name();
};

std::string Reader::name() {
  std::string name;
  for (;;) {
    const std::uint8_t length = u8();
    if (length > 63) fail("a label of more than 63 bytes");
    name.push_back(static_cast<char>(length));
    const auto label = take(length);
    if (std::any_of(label.begin(), label.end(), [](std::uint8_t c) { return c >= 'A' && c <= 'Z'; })) fail("a name that is not in lower case");
    name.append(label.begin(), label.end());
    if (name.size() > kMostNameBytes) fail("a name of more than 255 bytes");
    if (length == 0) return name;
  }
}

Apex read_apex(Reader& in) {
  Apex apex;
  apex.name = in.name();
  apex.server = in.name();
  apex.mailbox = in.name();
  for (std::uint32_t* number : {&apex.refresh, &apex.retry, &apex.expire, &apex.ttl}) *number = in.u32();
  const std::uint8_t reverse = in.u8();
  if (reverse > 1) fail("reverse is 0 or 1");
  apex.reverse = reverse == 1;
  return apex;
}

/// The message that a body belongs to, to be read as any other.
TypedAnswer read_answer(Reader& in, const std::string& name) {
  TypedAnswer answer{in.u16(), {}};
  std::vector<std::uint8_t> message(kHeaderSize + name.size() + 4);
  put16(&message[2], flag::kResponse);
  put16(&message[4], 1);
  for (std::size_t i = 0; i < 3; ++i) put16(&message[6 + 2 * i], in.u16());
  std::copy(name.begin(), name.end(), message.begin() + kHeaderSize);
  put16(&message[message.size() - 4], answer.type);
  put16(&message[message.size() - 2], kClassIn);
  const auto body = in.take(in.u16());
  message.insert(message.end(), body.begin(), body.end());
  Message read;
  std::vector<Record> records;
  if (read_message(message, read, &records) != Form::well_formed || read.edns) fail("a body that is none");
  if (answer.type == type::kAny) fail("an answer of type ANY");
  answer.body = body_of(message, read, std::move(records));
  return answer;
}

ReadyName read_name(Reader& in) {
  ReadyName name{in.name(), {}};
  const std::size_t answers = in.count(in.u16(), kAnswerSize);
  name.answers.reserve(answers);
  for (std::size_t i = 0; i < answers; ++i) name.answers.push_back(read_answer(in, name.name));
  return name;
}

std::shared_ptr<const ReadyGroup> read_group(Reader& in) {
  auto group = std::make_shared<ReadyGroup>();
  group->id = in.id();
  const std::size_t names = in.count(in.u16(), kNameSize);
  group->names.reserve(names);
  std::unordered_set<std::string> seen;
  for (std::size_t i = 0; i < names; ++i) {
    group->names.push_back(read_name(in));
    if (!seen.insert(group->names.back().name).second) fail("a name stands twice");
  }
  return group;
}

std::shared_ptr<const std::vector<Apex>> read_apexes(Reader& in, std::uint32_t count) {
  if (count == kAsTheyWere) return nullptr;
  auto apexes = std::make_shared<std::vector<Apex>>();
  apexes->reserve(count);
  std::unordered_set<std::string> seen;
  for (std::uint32_t i = 0; i < count; ++i) {
    apexes->push_back(read_apex(in));
    if (!seen.insert(apexes->back().name).second) fail("an apex stands twice");
  }
  return apexes;
}

std::shared_ptr<const ZoneDelta> read_delta(Reader& in) {
  if (in.u32() != kMagic) fail("not a zone delta");
  if (const std::uint16_t version = in.u16(); version != kVersion) fail("unknown version " + std::to_string(version));
  if (in.u16() != 0) fail("reserved bytes are not zero");
  auto delta = std::make_shared<ZoneDelta>();
  delta->serial = in.u32();
  const std::uint32_t apexes = in.u32();
  const std::size_t removes = in.u32();
  const std::size_t upserts = in.u32();
  if (apexes != kAsTheyWere) in.count(apexes, kApexSize);
  in.count(removes, kIdSize);
  in.count(upserts, kGroupSize);
  delta->apexes = read_apexes(in, apexes);
  std::unordered_set<std::string> seen;
  for (std::size_t i = 0; i < removes; ++i) {
    delta->remove.push_back(in.id());
    if (!seen.insert(delta->remove.back()).second) fail("a group stands twice");
  }
  for (std::size_t i = 0; i < upserts; ++i) {
    delta->upsert.push_back(read_group(in));
    if (!seen.insert(delta->upsert.back()->id).second) fail("a group stands twice");
  }
  if (!in.empty()) fail("bytes after the end");
  return delta;
}

}  // namespace

std::variant<std::shared_ptr<const ZoneDelta>, DecodeError> decode_zone_delta(std::span<const std::uint8_t> bytes) {
  try {
    Reader in(bytes);
    return read_delta(in);
  } catch (Malformed& malformed) {
    return DecodeError{std::move(malformed.problem)};
  }
}

std::variant<std::shared_ptr<CacheEntry>, DecodeError> decode_cache_entry(std::span<const std::uint8_t> message, bool dnssec_ok, bool checking_disabled) {
  Message read;
  std::vector<Record> records;
  if (read_message(message, read, &records) != Form::well_formed) return DecodeError{"not a message"};
  if (!read.is_response() || read.opcode() != 0) return DecodeError{"not a response to a query"};
  if (read.counts[0] != 1 || read.question_class != kClassIn) return DecodeError{"not one question of class IN"};
  if (read.edns) return DecodeError{"it has an OPT record"};
  auto entry = std::make_shared<CacheEntry>();
  entry->key = cache_key(read.name.view(), read.type, dnssec_ok, checking_disabled);
  entry->flags = read.flags;
  entry->body = body_of(message, read, std::move(records));
  return entry;
}

std::string decode_cache_key(std::span<const std::uint8_t> message, bool dnssec_ok, bool checking_disabled) {
  Message read;
  if (read_message(message, read) != Form::well_formed || read.counts[0] != 1) return {};
  return cache_key(read.name.view(), read.type, dnssec_ok, checking_disabled);
}

}  // namespace holdfast::dns
