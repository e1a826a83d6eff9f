#include "conntrack_table.h"

#include <algorithm>
#include <cerrno>

#include "conntrack_filter.h"
#include "conntrack_message.h"
#include "conntrack_row.h"

namespace holdfast::conntrack {
namespace {

/// Entries of one datagram: their answers (an entry takes about 300 bytes) fit any receiving buffer.
constexpr std::size_t kTogether = 256;

void count(Tally& tally, int error) {
  if (error == 0) {
    ++tally.done;
  } else if (error == -ENOENT) {
    ++tally.gone;
  } else {
    ++tally.failed;
    if (tally.error == 0) tally.error = error, tally.text = "the kernel refused it";
  }
}

/// `work` on up to `kTogether` at a time; what is left when it fails has failed.
template <typename Work>
Tally in_parts(const std::vector<Entry>& entries, Work work) {
  Tally tally;
  for (std::span<const Entry> rest(entries); !rest.empty();) {
    const auto part = rest.first(std::min(rest.size(), kTogether));
    if (const int error = work(part, tally); error != 0) {
      tally.error = error;
      tally.text = "talk to the kernel";
      tally.failed = static_cast<std::uint32_t>(entries.size()) - tally.done - tally.gone;
      return tally;
    }
    rest = rest.subspan(part.size());
  }
  return tally;
}

}  // namespace

template <typename Take>
int Table::talk(const Bytes& request, std::uint32_t last, Take take) {
  if (const int error = socket_.send(request); error != 0) return error;
  std::span<const std::uint8_t> datagram;
  for (bool ended = false; !ended;) {
    if (const int error = socket_.receive(datagram, 0); error != 0) return error;
    while (const auto message = netlink::next_message(datagram)) {
      take(*message);
      const auto answer = read_answer(*message);
      if (answer && answer->sequence == last) ended = true;
    }
    if (!datagram.empty()) return -EPROTO;
  }
  return 0;
}

int Table::list_once(const Filter& filter, bool by_tuple, Bytes& rows) {
  const std::uint32_t sequence = sequence_++;
  netlink::Writer writer;
  put_dump(writer, filter, by_tuple, sequence);
  const Matcher matches(filter);
  received_ = 0;
  int result = 0;
  const int error = talk(writer.take(), sequence, [&](const netlink::Message& message) {
    if (message.header.nlmsg_seq != sequence) return;
    if (const auto answer = read_answer(message)) result = answer->error;
    const auto entry = read_entry(message);
    if (!entry) return;
    ++received_;
    if (matches(*entry)) append_row(*entry, rows);
  });
  return error != 0 ? error : result;
}

int Table::list(const Filter& filter, Bytes& rows) {
  const std::size_t before = rows.size();
  const int error = list_once(filter, true, rows);
  // A kernel that does not know the filter for tuples: everything is matched here.
  if (error != -EINVAL && error != -EOPNOTSUPP) return error;
  rows.resize(before);
  return list_once(filter, false, rows);
}

Tally Table::remove(const std::vector<Entry>& entries) {
  return in_parts(entries, [this](std::span<const Entry> part, Tally& tally) { return remove_some(part, tally); });
}

/// The kernel answers what fails, and the last: the others are done.
int Table::remove_some(std::span<const Entry> entries, Tally& tally) {
  const std::uint32_t first = sequence_;
  const auto last = static_cast<std::uint32_t>(first + entries.size() - 1);
  sequence_ = last + 1;
  netlink::Writer writer;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto sequence = static_cast<std::uint32_t>(first + i);
    put_delete(writer, entries[i], sequence == last ? NLM_F_ACK : 0, sequence);
  }
  std::vector<int> errors(entries.size(), 0);
  const int error = talk(writer.take(), last, [&](const netlink::Message& message) {
    const auto answer = read_answer(message);
    if (answer && answer->sequence - first < errors.size()) errors[answer->sequence - first] = answer->error;
  });
  if (error == 0) {
    for (const int one : errors) count(tally, one);
  }
  return error;
}

Tally Table::mark(const std::vector<Entry>& entries, std::uint32_t mark, std::uint32_t mask) {
  return in_parts(entries, [&](std::span<const Entry> part, Tally& tally) { return mark_some(part, mark, mask, tally); });
}

/// Message 2 i sets the bits of entry i, message 2 i + 1 asks who has them now.
int Table::mark_some(std::span<const Entry> entries, std::uint32_t mark, std::uint32_t mask, Tally& tally) {
  const std::uint32_t first = sequence_;
  const auto last = static_cast<std::uint32_t>(first + 2 * entries.size() - 1);
  sequence_ = last + 1;
  netlink::Writer writer;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto sequence = static_cast<std::uint32_t>(first + 2 * i);
    put_mark(writer, entries[i], mark, mask, sequence);
    put_get(writer, entries[i], sequence + 1 == last ? NLM_F_ACK : 0, sequence + 1);
  }
  std::vector<int> errors(entries.size(), 0);
  std::vector<Entry> others;
  const int error = talk(writer.take(), last, [&](const netlink::Message& message) {
    const std::size_t i = (message.header.nlmsg_seq - first) / 2;
    if (i >= entries.size()) return;
    if (const auto answer = read_answer(message); answer && answer->error != 0 && errors[i] == 0) errors[i] = answer->error;
    const auto now = read_entry(message);
    if (!now || (now->id == entries[i].id && now->original == entries[i].original)) return;
    errors[i] = -ENOENT;
    others.push_back(*now);
  });
  if (error != 0) return error;
  for (const int one : errors) count(tally, one);
  return others.empty() ? 0 : clear(others, mask);
}

int Table::clear(std::span<const Entry> entries, std::uint32_t mask) {
  netlink::Writer writer;
  std::uint32_t last = 0;
  for (const Entry& entry : entries) put_mark(writer, entry, 0, mask, sequence_++);
  put_get(writer, entries.back(), NLM_F_ACK, last = sequence_++);
  return talk(writer.take(), last, [](const netlink::Message&) {});
}

}  // namespace holdfast::conntrack
