#include <array>
#include <cstdlib>

#include "dns_answer.h"
#include "dns_codec.h"

namespace {

using namespace holdfast::dns;

void require(bool holds) {
  if (!holds) std::abort();
}

std::string name_of(std::initializer_list<std::string_view> labels) {
  std::string name;
  for (const std::string_view label : labels) (name += static_cast<char>(label.size())) += label;
  return name += '\0';
}

/// A zone with a name, and a reverse one.
View view_of_zone() {
  View view(1, true);
  ZoneDelta delta;
  auto apexes = std::make_shared<std::vector<Apex>>();
  apexes->push_back({name_of({"z"}), name_of({"z"}), name_of({"h", "z"}), 1, 2, 3, 5, false});
  apexes->push_back({name_of({"10", "in-addr", "arpa"}), name_of({"z"}), name_of({"h", "z"}), 1, 2, 3, 5, true});
  delta.apexes = apexes;
  auto group = std::make_shared<ReadyGroup>();
  group->id = "g";
  group->names.push_back({name_of({"a", "z"}), {}});
  delta.upsert.push_back(group);
  view.zone.apply(delta);
  return view;
}

}  // namespace

/// A datagram, to whatever it may be: a question, an answer of an upstream server that is cut and kept, and then asked for.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static View view = view_of_zone();
  std::array<std::uint8_t, kUdpBytes> out;
  const std::span<const std::uint8_t> bytes(data, size);
  const auto now = holdfast::net::Clock::time_point(std::chrono::seconds(1'000));
  const auto entry = decode_cache_entry(bytes, false, false);
  if (const auto* kept = std::get_if<std::shared_ptr<CacheEntry>>(&entry)) {
    (*kept)->put_at = now - std::chrono::seconds(3);
    (*kept)->expires_at = (*kept)->refresh_at = now + std::chrono::seconds(1);
    view.cache.clear();
    view.cache.put(*kept);
  }
  const Outcome outcome = respond(bytes, view, now, out);
  require(outcome.size <= outcome.limit || outcome.size == kHeaderSize);
  require((outcome.verdict == Verdict::answered) == (outcome.size > 0));
  Message read;
  if (outcome.size > 0) require(read_message(std::span(out).first(outcome.size), read) == Form::well_formed && read.is_response());
  for (const std::size_t limit : {512, 1'232}) {
    const Cut cut = cut_to(bytes, limit, out);
    require(cut.size <= limit);
    Message again;
    if (cut.size > 0) require(read_message(std::span(out).first(cut.size), again) == Form::well_formed);
  }
  if (size < 3) return 0;
  // As a question, for what was kept.
  std::vector<std::uint8_t> question(bytes.begin(), bytes.end());
  question[2] &= 0x7f;
  const Outcome hit = respond(question, view, now, out);
  Message last;
  if (hit.size > 0) require(read_message(std::span(out).first(hit.size), last) == Form::well_formed);
  return 0;
}
