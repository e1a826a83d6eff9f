#pragma once

#include <array>
#include <functional>
#include <memory>
#include <thread>
#include <unordered_map>
#include <vector>

#include "dns_answer.h"
#include "dns_counters.h"
#include "dns_waiting.h"
#include "event_loop.h"
#include "udp_batch.h"

namespace holdfast::dns {

/// What no table answers, or what is answered but should be asked for again (no handle).
struct Question {
  std::optional<std::uint64_t> handle;
  std::vector<std::uint8_t> query;
  net::SocketAddress client;
};

/// From any thread, must not block. False: not taken.
using QuestionSink = std::function<bool(Question)>;

struct Shared {
  Waiting waiting;
  /// Empty: names outside the zone are refused.
  QuestionSink sink;
};

/// A thread that answers, with its own view of the tables. All it is told comes by its mailbox, between two batches.
class Worker {
 public:
  Worker(std::size_t index, std::uint64_t seed, Shared& shared);

  // The control side's.
  void start();
  void begin_stop();
  void join() noexcept;
  using Sockets = std::vector<std::shared_ptr<proxy::ListenSocket>>;
  /// From now on it reads these.
  void listen(Sockets sockets);
  /// `change` runs on the thread.
  void post(std::function<void(View&)> change);
  const Counters& counters() const noexcept { return counters_; }

 private:
  /// One socket, which other workers may read too.
  class Reader final : public net::EventHandler {
   public:
    Reader(Worker& worker, std::shared_ptr<proxy::ListenSocket> socket) : worker_(worker), socket_(std::move(socket)) {}
    void on_event(std::uint32_t events) override;

   private:
    friend class Worker;
    Worker& worker_;
    std::shared_ptr<proxy::ListenSocket> socket_;
    std::size_t segment_limit_ = proxy::kUdpRoom;
  };

  void set_readers(const Sockets& sockets);
  /// @return how many datagrams there were.
  std::size_t answer_batch(Reader& reader);
  /// @return the bytes of the answer, 0 for none.
  std::size_t answer_one(const Reader& reader, std::size_t place, net::Clock::time_point now, std::span<std::uint8_t, kUdpBytes> out);
  void hand_up(const Reader& reader, std::size_t place, const Outcome& outcome);
  void send(Reader& reader);

  const std::size_t index_;
  Shared& shared_;
  net::EventLoop loop_;
  View view_;
  Counters counters_;
  proxy::UdpInbox inbox_;
  proxy::UdpOutbox outbox_;
  std::array<std::array<std::uint8_t, kUdpBytes>, proxy::kUdpBatch> answers_;
  std::unordered_map<int, std::unique_ptr<Reader>> readers_;
  std::thread thread_;
};

}  // namespace holdfast::dns
