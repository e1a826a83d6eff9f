#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dns_worker.h"

namespace holdfast::dns {

struct ListenResult {
  net::SocketAddress address;
  std::optional<proxy::ListenError> error;
};

struct Stats {
  std::array<std::array<std::uint64_t, kRcodeColumns>, kTypeRows> answered{};
  std::uint64_t cache_hits = 0;
  std::uint64_t handed_up = 0;
  std::uint64_t dropped_questions = 0;
  std::uint64_t dropped_answers = 0;
  std::uint64_t truncated = 0;
  std::uint64_t names = 0;
  std::uint64_t cached = 0;
  std::uint64_t waiting = 0;
  std::uint64_t threads = 0;
};

/// Answers by UDP on threads of its own. The functions are called by one thread, and none but `stop` waits for the others.
class Responder {
 public:
  /// Starts the threads, 1 at least. Without a sink nothing is handed up. @throws std::system_error
  Responder(std::size_t threads, QuestionSink sink);
  ~Responder() { stop(); }

  /// From now on exactly these; sockets that are open already stay.
  std::vector<ListenResult> listen(const std::vector<net::SocketAddress>& addresses);
  /// `taken` runs on one of the threads when all have the new table.
  void apply(std::shared_ptr<const ZoneDelta> delta, std::function<void()> taken);
  void put_cached(std::shared_ptr<const CacheEntry> entry);
  void remove_cached(const std::string& key);
  void clear_cached();
  /// Empty: nobody is answered. A handle that was given back before is ignored.
  void answer(std::uint64_t handle, std::span<const std::uint8_t> message);
  Stats stats() const;
  /// Joins the threads and closes the sockets. Again: nothing.
  void stop() noexcept;

 private:
  void post(const std::function<void(View&)>& change);

  Shared shared_;
  std::vector<std::unique_ptr<Worker>> workers_;
  Worker::Sockets sockets_;
  /// Of answers that came from above.
  Counters counters_;
  std::array<std::uint8_t, kUdpBytes> room_;
};

}  // namespace holdfast::dns
