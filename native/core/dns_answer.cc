#include "dns_answer.h"

#include <algorithm>
#include <cstring>

namespace holdfast::dns {
namespace {

using Out = std::span<std::uint8_t, kUdpBytes>;

/// The records of one message as they are written: what does not fit is cut at a record's beginning.
class Writer {
 public:
  /// Behind the question, which stands in `out` already. Records may fill `room` bytes.
  Writer(Out out, std::size_t at, std::size_t room) noexcept : out_(out), at_(at), room_(room) {}

  /// False when there is no room for it.
  bool add(std::uint8_t section, const std::uint8_t* bytes, std::size_t size) noexcept {
    if (size > room_ - at_) return false;
    std::memcpy(&out_[at_], bytes, size);
    at_ += size;
    ++counts_[section];
    return true;
  }
  void add_all(const Body& body) noexcept {
    std::memcpy(&out_[at_], body.bytes.data(), body.bytes.size());
    at_ += body.bytes.size();
    counts_ = body.counts;
  }
  bool fits(std::size_t size) const noexcept { return size <= room_ - at_; }
  std::size_t at() const noexcept { return at_; }
  std::uint8_t* last(std::size_t size) noexcept { return &out_[at_ - size]; }

  void opt(const std::uint8_t* bytes) noexcept {
    std::memcpy(&out_[at_], bytes, kOptSize);
    at_ += kOptSize;
    ++counts_[2];
  }
  void header(std::uint16_t id, std::uint16_t flags, bool question) noexcept {
    put16(&out_[0], id);
    put16(&out_[2], flags);
    put16(&out_[4], question ? 1 : 0);
    for (std::size_t i = 0; i < 3; ++i) put16(&out_[6 + 2 * i], counts_[i]);
  }

 private:
  Out out_;
  std::size_t at_;
  std::size_t room_;
  std::array<std::uint16_t, 3> counts_{};
};

/// One question on its way to its answer.
class Answer {
 public:
  Answer(std::span<const std::uint8_t> query, const Message& asked, View& view, net::Clock::time_point now, Out out) noexcept
      : query_(query),
        asked_(asked),
        view_(view),
        now_(now),
        out_(out),
        limit_(asked.edns ? std::min<std::size_t>(asked.edns->payload, kUdpBytes) : kUdpBytesWithoutEdns),
        writer_(out, asked.question_end, limit_ - (asked.edns ? kOptSize : 0)) {
    outcome_.limit = static_cast<std::uint16_t>(limit_);
    outcome_.type = asked.counts[0] == 0 ? 0 : asked.type;
  }

  Outcome run();

 private:
  std::optional<Rcode> refusal() const noexcept;
  Outcome from_zone(const Apex& apex, const ReadyName* name);
  Outcome from_cache();
  void write(const Body& body, std::uint32_t age) noexcept;
  bool write_soa(std::uint8_t section, const Apex& apex) noexcept;
  Outcome with_soa(std::uint8_t section, const Apex& apex, Rcode rcode) noexcept;
  Outcome of_body(const Body& body) noexcept;
  Outcome done(Rcode rcode, std::uint16_t flags) noexcept;

  std::span<const std::uint8_t> query_;
  const Message& asked_;
  View& view_;
  const net::Clock::time_point now_;
  Out out_;
  const std::size_t limit_;
  Writer writer_;
  Outcome outcome_;
};

std::optional<Rcode> Answer::refusal() const noexcept {
  if (asked_.opcode() != 0) return Rcode::notimp;
  if (asked_.edns && asked_.edns->version > 0) return Rcode::badvers;
  // RFC 9619: one question, and a server says so.
  if (asked_.counts[0] != 1 || asked_.counts[1] != 0) return Rcode::formerr;
  if (asked_.question_class != kClassIn && asked_.question_class != kClassAny) return Rcode::refused;
  if (asked_.type == type::kAxfr || asked_.type == type::kIxfr) return Rcode::refused;
  // OPT, and TKEY to MAILA: they are no types of data (RFC 6895, 3.1).
  const bool meta = asked_.type == type::kOpt || asked_.type == 0 || (asked_.type >= 128 && asked_.type < type::kAny);
  return meta ? std::optional(Rcode::formerr) : std::nullopt;
}

Outcome Answer::run() {
  if (asked_.counts[0] > 0) std::memcpy(&out_[kHeaderSize], &query_[kHeaderSize], asked_.question_end - kHeaderSize);
  if (const auto refused = refusal()) return done(*refused, 0);
  const ReadyName* name = view_.zone.find(asked_.name.view());
  const Body* body = name == nullptr || asked_.type == type::kAny ? nullptr : name->find(asked_.type);
  if (body != nullptr) return of_body(*body);
  if (const Apex* apex = view_.zone.apex_of(asked_.name.view())) return from_zone(*apex, name);
  if (!view_.hands_up || asked_.question_class != kClassIn) return done(Rcode::refused, 0);
  return from_cache();
}

/// A name in in-addr.arpa whose labels are numbers: fewer of them than an address has. Canonical, as an address is written (RFC 1035, 3.5).
bool is_above_addresses(std::string_view name) noexcept {
  constexpr std::size_t kRestSize = sizeof "\7in-addr\4arpa";
  std::size_t numbers = 0;
  while (name.size() > kRestSize) {
    const auto length = static_cast<std::size_t>(name.front());
    const std::string_view label = name.substr(1, length);
    const bool digits = std::all_of(label.begin(), label.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (!digits || length > 3 || (length > 1 && label.front() == '0')) return false;
    ++numbers;
    name.remove_prefix(1 + length);
  }
  return numbers < 4;
}

Outcome Answer::from_zone(const Apex& apex, const ReadyName* name) {
  const bool at_apex = asked_.name.size() == apex.name.size();
  if (at_apex && (asked_.type == type::kSoa || asked_.type == type::kAny)) return with_soa(0, apex, Rcode::noerror);
  if (name != nullptr && asked_.type == type::kAny) {
    if (const Body* first = name->find(type::kAny)) return of_body(*first);
  }
  const bool exists = name != nullptr || at_apex || (apex.reverse && is_above_addresses(asked_.name.view()));
  return with_soa(1, apex, exists ? Rcode::noerror : Rcode::nxdomain);
}

Outcome Answer::from_cache() {
  const bool checking_disabled = (asked_.flags & flag::kCheckingDisabled) != 0;
  const std::string key = cache_key(asked_.name.view(), asked_.type, asked_.edns && asked_.edns->dnssec_ok, checking_disabled);
  const auto [entry, refresh] = view_.cache.find(key, now_);
  if (entry == nullptr) {
    outcome_.verdict = Verdict::handed_up;
    return outcome_;
  }
  outcome_.from_cache = true;
  outcome_.refresh = refresh;
  write(entry->body, static_cast<std::uint32_t>(std::chrono::duration_cast<std::chrono::seconds>(now_ - entry->put_at).count()));
  return done(static_cast<Rcode>(entry->flags & 0xf), entry->flags & ~0xf);
}

Outcome Answer::of_body(const Body& body) noexcept {
  if (!body.rotates && writer_.fits(body.bytes.size())) {
    writer_.add_all(body);
  } else {
    write(body, 0);
  }
  return done(Rcode::noerror, flag::kAuthoritative);
}

/// @param age seconds by which TTLs are counted down
void Answer::write(const Body& body, std::uint32_t age) noexcept {
  const std::size_t turns = body.rotates ? body.counts[0] : 1;
  const std::size_t first = body.rotates ? view_.turn++ % turns : 0;
  for (std::size_t i = 0; i < body.records.size(); ++i) {
    const Record& record = body.records[i < turns ? (i + first) % turns : i];
    if (outcome_.truncated && record.section == 2) return;
    const std::size_t size = record.end - record.begin;
    if (!writer_.add(record.section, &body.bytes[record.begin - asked_.question_end], size)) {
      outcome_.truncated = record.section != 2;
      return;
    }
    std::uint8_t* ttl = writer_.last(size) + (record.ttl_at - record.begin);
    if (age > 0) put32(ttl, get32(ttl) - std::min(get32(ttl), age));
  }
}

/// The owner is an end of the question's name; the other names are pointed at where they can be.
bool Answer::write_soa(std::uint8_t section, const Apex& apex) noexcept {
  constexpr std::size_t kFixed = 2 + 10 + 20;
  std::array<std::uint8_t, kFixed + 2 * kMostNameBytes> record;
  std::size_t at = 0;
  const auto pointer = [&](std::size_t target) {
    put16(&record[at], 0xc000 + target);
    at += 2;
  };
  const auto text = [&](std::string_view bytes) {
    std::memcpy(&record[at], bytes.data(), bytes.size());
    at += bytes.size();
  };
  const std::size_t owner = kHeaderSize + asked_.name.size() - apex.name.size();
  pointer(owner);
  put16(&record[2], type::kSoa);
  put16(&record[4], kClassIn);
  put32(&record[6], apex.ttl);
  at = 12;
  const bool same = apex.server == apex.name;
  const std::size_t server = same ? owner : writer_.at() + at;
  if (same) pointer(owner);
  else text(apex.server);
  const std::string_view mailbox = apex.mailbox;
  if (mailbox.size() > apex.server.size() && mailbox.ends_with(apex.server)) {
    text(mailbox.substr(0, mailbox.size() - apex.server.size()));
    pointer(server);
  } else {
    text(mailbox);
  }
  for (const std::uint32_t number : {view_.zone.serial(), apex.refresh, apex.retry, apex.expire, apex.ttl}) {
    put32(&record[at], number);
    at += 4;
  }
  put16(&record[10], at - 12);
  return writer_.add(section, record.data(), at);
}

Outcome Answer::with_soa(std::uint8_t section, const Apex& apex, Rcode rcode) noexcept {
  outcome_.truncated = !write_soa(section, apex);
  return done(rcode, flag::kAuthoritative);
}

Outcome Answer::done(Rcode rcode, std::uint16_t flags) noexcept {
  const auto code = static_cast<std::uint16_t>(rcode);
  if (asked_.edns) {
    std::array<std::uint8_t, kOptSize> opt{};
    put16(&opt[1], type::kOpt);
    put16(&opt[3], kUdpBytes);
    opt[5] = static_cast<std::uint8_t>(code >> 4);
    put16(&opt[7], asked_.edns->dnssec_ok ? 0x8000 : 0);
    writer_.opt(opt.data());
  }
  // CD is copied where checking is a question at all (RFC 4035, 3.2.2): in the answers of others.
  const std::uint16_t copied = flag::kRecursionDesired | (outcome_.from_cache ? flag::kCheckingDisabled : 0);
  const auto own = static_cast<std::uint16_t>(flags & ~copied);
  const auto opcode = static_cast<std::uint16_t>(asked_.opcode() << 11);
  const std::uint16_t truncated = outcome_.truncated ? flag::kTruncated : 0;
  writer_.header(asked_.id, static_cast<std::uint16_t>(flag::kResponse | opcode | own | truncated | (asked_.flags & copied) | (code & 0xf)), asked_.counts[0] > 0);
  outcome_.verdict = Verdict::answered;
  outcome_.size = writer_.at();
  outcome_.rcode = rcode;
  return outcome_;
}

/// Its id is all that can be trusted of it.
Outcome refuse_malformed(const Message& asked, Out out) noexcept {
  const Rcode rcode = asked.opcode() == 0 ? Rcode::formerr : Rcode::notimp;
  Writer writer(out, kHeaderSize, kHeaderSize);
  writer.header(asked.id, static_cast<std::uint16_t>(flag::kResponse | asked.opcode() << 11 | static_cast<std::uint16_t>(rcode)), false);
  Outcome outcome;
  outcome.verdict = Verdict::answered;
  outcome.size = kHeaderSize;
  outcome.rcode = rcode;
  return outcome;
}

}  // namespace

Outcome respond(std::span<const std::uint8_t> query, View& view, net::Clock::time_point now, std::span<std::uint8_t, kUdpBytes> out) {
  Message asked;
  const Form form = read_message(query, asked);
  // Answers are never answered: two servers would go on for ever.
  if (form == Form::no_header || asked.is_response()) return {};
  if (form == Form::malformed) return refuse_malformed(asked, out);
  return Answer(query, asked, view, now, out).run();
}

Cut cut_to(std::span<const std::uint8_t> message, std::size_t limit, std::span<std::uint8_t, kUdpBytes> out) {
  Message read;
  std::vector<Record> records;
  if (read_message(message, read, &records) != Form::well_formed || !read.is_response()) return {};
  const auto opt = std::find_if(records.begin(), records.end(), [](const Record& record) { return record.type == type::kOpt; });
  const std::size_t opt_size = opt == records.end() ? 0 : opt->end - opt->begin;
  const std::uint16_t extended = opt == records.end() ? 0 : static_cast<std::uint16_t>(message[opt->ttl_at] << 4);
  Cut cut{0, read.type, static_cast<Rcode>(extended | (read.flags & 0xf)), false};
  limit = std::min(limit, kUdpBytes);
  if (read.question_end + opt_size > limit || read.counts[0] != 1) return {};
  if (message.size() <= limit) {
    std::copy(message.begin(), message.end(), out.begin());
    cut.size = message.size();
    return cut;
  }
  std::copy_n(message.begin(), read.question_end, out.begin());
  Writer writer(out, read.question_end, limit - opt_size);
  for (const Record& record : records) {
    // What stands behind it would move, and pointers to that with it.
    if (record.type == type::kOpt) break;
    if (writer.add(record.section, &message[record.begin], record.end - record.begin)) continue;
    cut.truncated = record.section != 2;
    break;
  }
  Writer end(out, writer.at(), limit);
  if (opt_size > 0) end.add(2, &message[opt->begin], opt_size);
  writer.header(read.id, static_cast<std::uint16_t>(read.flags | (cut.truncated ? flag::kTruncated : 0)), true);
  if (opt_size > 0) put16(&out[10], get16(&out[10]) + 1u);
  cut.size = end.at();
  return cut;
}

}  // namespace holdfast::dns
