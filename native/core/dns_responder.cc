#include "dns_responder.h"

#include <sys/socket.h>

#include <algorithm>
#include <random>

#include "events.h"
#include "udp_socket.h"

namespace holdfast::dns {
namespace {

std::uint64_t random_seed() {
  std::random_device random;
  return static_cast<std::uint64_t>(random()) << 32 | random();
}

void add(Stats& sum, const Counters& counters) {
  for (std::size_t row = 0; row < kTypeRows; ++row) {
    for (std::size_t column = 0; column < kRcodeColumns; ++column) sum.answered[row][column] += counters.answered[row][column].value();
  }
  sum.cache_hits += counters.cache_hits.value();
  sum.handed_up += counters.handed_up.value();
  sum.dropped_questions += counters.dropped_questions.value();
  sum.dropped_answers += counters.dropped_answers.value();
  sum.truncated += counters.truncated.value();
  sum.names = std::max(sum.names, counters.names.load(std::memory_order_relaxed));
  sum.cached = std::max(sum.cached, counters.cached.load(std::memory_order_relaxed));
}

}  // namespace

Responder::Responder(std::size_t threads, QuestionSink sink) {
  shared_.sink = std::move(sink);
  const std::uint64_t seed = random_seed();
  for (std::size_t i = 0; i < std::max<std::size_t>(1, threads); ++i) workers_.push_back(std::make_unique<Worker>(i, seed, shared_));
  try {
    for (const auto& worker : workers_) worker->start();
  } catch (...) {
    stop();
    throw;
  }
}

std::vector<ListenResult> Responder::listen(const std::vector<net::SocketAddress>& addresses) {
  Worker::Sockets kept;
  for (const auto& socket : sockets_) {
    if (std::find(addresses.begin(), addresses.end(), socket->bound()) != addresses.end()) kept.push_back(socket);
  }
  sockets_ = kept;
  std::vector<ListenResult> results;
  for (const net::SocketAddress& address : addresses) {
    results.push_back({address, std::nullopt});
    if (std::any_of(sockets_.begin(), sockets_.end(), [&](const auto& socket) { return socket->bound() == address; })) continue;
    auto opened = proxy::open_udp(address, 0);
    if (auto* error = std::get_if<proxy::ListenError>(&opened)) {
      results.back().error = std::move(*error);
    } else {
      sockets_.push_back(std::get<std::shared_ptr<proxy::ListenSocket>>(opened));
    }
  }
  for (const auto& worker : workers_) worker->listen(sockets_);
  return results;
}

void Responder::post(const std::function<void(View&)>& change) {
  for (const auto& worker : workers_) worker->post(change);
}

void Responder::apply(std::shared_ptr<const ZoneDelta> delta, std::function<void()> taken) {
  const auto countdown = std::make_shared<proxy::Countdown>(workers_.size(), std::move(taken));
  post([delta = std::move(delta), countdown](View& view) {
    view.zone.apply(*delta);
    countdown->arrive();
  });
}

void Responder::put_cached(std::shared_ptr<const CacheEntry> entry) {
  post([entry = std::move(entry)](View& view) { view.cache.put(entry); });
}

void Responder::remove_cached(const std::string& key) {
  post([key](View& view) { view.cache.remove(key); });
}

void Responder::clear_cached() {
  post([](View& view) { view.cache.clear(); });
}

void Responder::answer(std::uint64_t handle, std::span<const std::uint8_t> message) {
  const std::optional<Asker> asker = shared_.waiting.take(handle);
  if (!asker) return;
  const Cut cut = message.empty() ? Cut{} : cut_to(message, asker->limit, room_);
  counters_.count(cut.type, cut.size == 0 ? kNothingSent : rcode_column(cut.rcode));
  if (cut.size == 0) return;
  if (cut.truncated) counters_.truncated.add(1);
  const auto* to = static_cast<const sockaddr*>(asker->client.data());
  if (::sendto(asker->socket->fd(), room_.data(), cut.size, MSG_DONTWAIT | MSG_NOSIGNAL, to, asker->client.size()) < 0) counters_.dropped_answers.add(1);
}

Stats Responder::stats() const {
  Stats sum;
  add(sum, counters_);
  for (const auto& worker : workers_) add(sum, worker->counters());
  sum.waiting = shared_.waiting.size();
  sum.threads = workers_.size();
  return sum;
}

void Responder::stop() noexcept {
  for (const auto& worker : workers_) worker->begin_stop();
  for (const auto& worker : workers_) worker->join();
  sockets_.clear();
}

}  // namespace holdfast::dns
