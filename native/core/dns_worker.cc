#include "dns_worker.h"

#include <pthread.h>
#include <sys/epoll.h>

#include <algorithm>
#include <csignal>
#include <set>
#include <string>

namespace holdfast::dns {
namespace {

/// Batches in a row of one socket, before the others and the mailbox have their turn.
constexpr int kMostBatches = 4;

}  // namespace

Worker::Worker(std::size_t index, std::uint64_t seed, Shared& shared) : index_(index), shared_(shared), view_(seed, static_cast<bool>(shared.sink)) {}

/// Signals belong to the host program's threads.
void Worker::start() {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] {
    loop_.run();
    readers_.clear();
  });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_setname_np(thread_.native_handle(), ("holdfast-dns" + std::to_string(index_ % 1000)).c_str());
}

void Worker::begin_stop() {
  loop_.post([this] { loop_.stop(); });
}

void Worker::join() noexcept {
  if (thread_.joinable()) thread_.join();
}

void Worker::listen(Sockets sockets) {
  loop_.post([this, sockets = std::move(sockets)] { set_readers(sockets); });
}

void Worker::post(std::function<void(View&)> change) {
  loop_.post([this, change = std::move(change)] {
    change(view_);
    counters_.names.store(view_.zone.size(), std::memory_order_relaxed);
    counters_.cached.store(view_.cache.size(), std::memory_order_relaxed);
  });
}

void Worker::set_readers(const Sockets& sockets) {
  std::set<int> wanted;
  for (const auto& socket : sockets) wanted.insert(socket->fd());
  std::erase_if(readers_, [&](const auto& reader) {
    if (wanted.contains(reader.first)) return false;
    loop_.remove(reader.first);
    return true;
  });
  for (const auto& socket : sockets) {
    auto& reader = readers_[socket->fd()];
    if (reader) continue;
    reader = std::make_unique<Reader>(*this, socket);
    loop_.add(socket->fd(), EPOLLIN | EPOLLEXCLUSIVE, *reader);
  }
}

void Worker::Reader::on_event(std::uint32_t) {
  for (int i = 0; i < kMostBatches; ++i) {
    if (worker_.answer_batch(*this) < proxy::kUdpBatch) return;
  }
}

std::size_t Worker::answer_batch(Reader& reader) {
  const int count = inbox_.receive(reader.socket_->fd(), 0, proxy::kUdpBatch);
  // An error of an earlier datagram, reported here, is taken by the report.
  if (count <= 0) return 0;
  const net::Clock::time_point now = net::Clock::now();
  for (std::size_t place = 0; place < static_cast<std::size_t>(count); ++place) {
    auto& out = answers_[place];
    const std::size_t size = answer_one(reader, place, now, out);
    if (size > 0) outbox_.add(&inbox_.from(place), {out.data(), size}, reader.segment_limit_);
  }
  send(reader);
  return static_cast<std::size_t>(count);
}

std::size_t Worker::answer_one(const Reader& reader, std::size_t place, net::Clock::time_point now, std::span<std::uint8_t, kUdpBytes> out) {
  const Outcome outcome = respond(inbox_.datagram(place), view_, now, out);
  if (outcome.refresh || outcome.verdict == Verdict::handed_up) hand_up(reader, place, outcome);
  if (outcome.verdict == Verdict::handed_up) return 0;
  counters_.count(outcome.type, outcome.verdict == Verdict::silent ? kNothingSent : rcode_column(outcome.rcode));
  if (outcome.from_cache) counters_.cache_hits.add(1);
  if (outcome.truncated) counters_.truncated.add(1);
  return outcome.size;
}

void Worker::hand_up(const Reader& reader, std::size_t place, const Outcome& outcome) {
  const auto datagram = inbox_.datagram(place);
  const proxy::UdpClient& client = inbox_.from(place);
  Question question{std::nullopt, {datagram.begin(), datagram.end()}, client.address()};
  if (outcome.verdict != Verdict::handed_up) {
    if (question.client.port != 0) shared_.sink(std::move(question));
    return;
  }
  // Nobody can be answered at port 0.
  if (question.client.port != 0) question.handle = shared_.waiting.add({reader.socket_, client, outcome.limit});
  const std::optional<std::uint64_t> handle = question.handle;
  if (handle && shared_.sink(std::move(question))) {
    counters_.handed_up.add(1);
    return;
  }
  if (handle) shared_.waiting.take(*handle);
  counters_.dropped_questions.add(1);
}

/// What cannot be sent now is of that asker alone, who asks again.
void Worker::send(Reader& reader) {
  while (!outbox_.empty()) {
    const proxy::UdpOutbox::Sent sent = outbox_.send(reader.socket_->fd());
    reader.segment_limit_ = std::min(reader.segment_limit_, sent.segment_limit);
    if (sent.error == 0) break;
    const bool full = sent.error == EAGAIN || sent.error == EWOULDBLOCK;
    counters_.dropped_answers.add(full ? outbox_.left() : outbox_.drop_front());
    if (full) break;
  }
  outbox_.clear();
}

}  // namespace holdfast::dns
