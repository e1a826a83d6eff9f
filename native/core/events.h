#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <variant>

#include "table.h"

namespace holdfast::proxy {

/// The last connection of a withdrawn endpoint is gone; `closed` of them were cut at the deadline.
struct Drained {
  ListenerId id;
  net::SocketAddress endpoint;
  std::uint64_t closed;
};

/// An endpoint's dials failed several times in a row: it gets no new connection until it has `returned`.
struct Ejected {
  ListenerId id;
  net::SocketAddress endpoint;
  bool returned;
};

/// Descriptors or memory ran out.
struct AcceptPaused {
  std::string detail;
};

using Event = std::variant<Drained, Ejected, AcceptPaused>;

/// Called by the workers: any thread, must not block.
using EventSink = std::function<void(Event)>;

/// Waits for all workers without a waiter: the last one to arrive runs `done`.
class Countdown {
 public:
  Countdown(std::size_t workers, std::function<void()> done) : left_(workers), done_(std::move(done)) {}
  void arrive() {
    if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1 && done_) done_();
  }

 private:
  std::atomic<std::size_t> left_;
  std::function<void()> done_;
};

/// One withdrawal of an endpoint. Each worker leaves when it has no connection of it any more, and the last one tells. A worker that sees
/// the endpoint come back lets go of it without leaving, so that a cancelled drain never tells.
class Drain {
 public:
  Drain(std::size_t workers, ListenerId id, const net::SocketAddress& endpoint) : left_(workers), id_(id), endpoint_(endpoint) {}

  void leave(std::uint64_t closed, const EventSink& sink) {
    closed_.fetch_add(closed, std::memory_order_relaxed);
    if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1) sink(Drained{id_, endpoint_, closed_.load(std::memory_order_relaxed)});
  }

 private:
  std::atomic<std::size_t> left_;
  std::atomic<std::uint64_t> closed_{0};
  ListenerId id_;
  net::SocketAddress endpoint_;
};

}  // namespace holdfast::proxy
