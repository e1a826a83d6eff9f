// Connection, from the moment that an endpoint is connected.

#include <linux/sockios.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>

#include "connection.h"
#include "interest.h"
#include "listener.h"
#include "worker.h"

namespace holdfast::proxy {
namespace {

/// After these a read must go on to the end: an edge for what follows may already be spent.
constexpr std::uint32_t kUntilEnd = EPOLLRDHUP | EPOLLHUP | EPOLLERR | EPOLLPRI;

/// Per direction and turn: a pipe's fill or four of the scratch memory, then it is the next connection's turn.
constexpr std::size_t kTurnBudget = 4 * Worker::kScratchSize;

/// How long bytes before a reset may take to arrive, and how often that is looked at (the kernel has no event for it).
constexpr auto kResetPatience = std::chrono::seconds(5);
constexpr auto kResetPoll = std::chrono::milliseconds(5);

int unacknowledged(int fd) noexcept {
  int bytes = 0;
  return ::ioctl(fd, SIOCOUTQ, &bytes) == 0 ? bytes : 0;
}

}  // namespace

void Connection::on_side_event(Side& side, std::uint32_t events) {
  switch (phase_) {
    case Phase::header:
      take_events(side, events);
      return read_header();
    case Phase::dialling:
      if (&side == &upstream_side_) return on_dial_event(events);
      take_events(side, events);
      // It has reset the connection. A half-close waits for the endpoint.
      if ((events & (EPOLLERR | EPOLLHUP)) != 0) abort(Outcome::reset);
      return;
    case Phase::relaying:
      take_events(side, events);
      return relay();
    case Phase::ended:
      return;
  }
}

void Connection::take_events(Side& side, std::uint32_t events) {
  const bool from_client = &side == &client_side_;
  Flow& out_of = from_client ? to_upstream_ : to_client_;
  Flow& into = from_client ? to_client_ : to_upstream_;
  if ((events & (EPOLLIN | kUntilEnd)) != 0) out_of.source_ready((events & kUntilEnd) != 0);
  if ((events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0) into.sink_ready();
  if ((events & EPOLLERR) != 0 && socket_error(side.fd.get()) != 0) out_of.source_broke();
}

void Connection::relay() {
  const int client = client_side_.fd.get();
  const int upstream = upstream_side_.fd.get();
  const PumpAids aids = worker_.pump_aids();
  ListenerBlock& block = counters_->of(worker_.index());
  if (idle_ != 0) last_moved_ = net::Clock::now();
  auto up = to_upstream_.pump(client, upstream, aids, kTurnBudget, block.bytes_in);
  if (up == Flow::State::sink_failed) to_client_.source_broke();
  const auto down = to_client_.pump(upstream, client, aids, kTurnBudget, block.bytes_out);
  if (down == Flow::State::sink_failed) {
    to_upstream_.source_broke();
    up = to_upstream_.pump(client, upstream, aids, kTurnBudget, block.bytes_in);
  }
  const bool up_ended = up == Flow::State::ended;
  const bool down_ended = down == Flow::State::ended;
  if (up_ended && down_ended) return end(Outcome::completed);
  if (up_ended && !fin_to_upstream_) fin_to_upstream_ = ::shutdown(upstream, SHUT_WR) == 0;
  if (down_ended && !fin_to_client_) fin_to_client_ = ::shutdown(client, SHUT_WR) == 0;
  if (to_upstream_.broken() || to_client_.broken()) settle_break(up, down);
  if (phase_ == Phase::relaying) carry_on(up, down);
}

/// Sees to it that there is a next turn when it is needed.
void Connection::carry_on(Flow::State up, Flow::State down) {
  if (to_client_.blocked() && !client_announces_room_ && client_watched_) {
    client_announces_room_ = worker_.loop().change(client_side_.fd.get(), kInterest | EPOLLOUT, client_side_) == 0;
  }
  const bool unfinished = up == Flow::State::unfinished || down == Flow::State::unfinished;
  if (!unfinished || queued_) return;
  queued_ = true;
  worker_.loop().defer([this] {
    queued_ = false;
    if (phase_ == Phase::relaying) relay();
  });
}

/// A reset throws away what the kernel has not delivered yet, so it waits for that.
void Connection::settle_break(Flow::State up, Flow::State down) {
  if (to_upstream_.broken() && to_client_.broken()) return abort(Outcome::reset);
  const Side* sink = up == Flow::State::source_failed     ? &upstream_side_
                     : down == Flow::State::source_failed ? &client_side_
                                                          : nullptr;
  if (sink != nullptr && unacknowledged(sink->fd.get()) == 0) return abort(Outcome::reset);
  const auto now = net::Clock::now();
  if (give_up_ == net::Clock::time_point{}) give_up_ = now + kResetPatience;
  if (now >= give_up_) return abort(Outcome::reset);
  if (timer_) return;
  timer_ = worker_.loop().after(kResetPoll, [this] {
    timer_ = {};
    relay();
  });
}

/// One timer per idle time, not per byte: when it is due, it is set again for what is left. An idle connection is reset, as its peers
/// would take an end of stream for the end of an answer.
void Connection::watch_idleness(std::chrono::milliseconds left) {
  idle_timer_ = worker_.loop().after(left, [this] {
    idle_timer_ = {};
    const auto quiet = net::Clock::now() - last_moved_;
    const std::chrono::milliseconds most(idle_);
    if (quiet >= most) return abort(Outcome::reset);
    watch_idleness(std::chrono::ceil<std::chrono::milliseconds>(most - quiet));
  });
}

/// The listener's sockets hand keepalive on to the client's side.
void Connection::settle() noexcept {
  settled_ = true;
  if (phase_ != Phase::relaying) return;
  const int on = 1;
  ::setsockopt(upstream_side_.fd.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

void Connection::abort(Outcome outcome) {
  reset_on_close(client_side_.fd.get());
  if (upstream_side_.fd) reset_on_close(upstream_side_.fd.get());
  end(outcome);
}

void Connection::end(Outcome outcome) {
  phase_ = Phase::ended;
  worker_.loop().cancel(timer_);
  worker_.loop().cancel(idle_timer_);
  to_upstream_.drop(worker_.pipes());
  to_client_.drop(worker_.pipes());
  client_side_.fd.reset();
  upstream_side_.fd.reset();
  ListenerBlock& block = counters_->of(worker_.index());
  if (endpoint_counters_) {
    endpoint_counters_->of(worker_.index()).closed.add(1);
    if (Times* times = block.times()) times->connection.observe(kConnectionBounds, net::Clock::now() - begun_);
  }
  block.ended[static_cast<std::size_t>(outcome)].add(1);
  counters_->open.down();
  worker_.limits().release();
  WorkerHook::unlink();
  UpstreamHook::unlink();
  if (upstream_ != nullptr) {
    upstream_->counters->load.down();
    listener_->released(*upstream_);
  }
  worker_.connection_ended();
  // A later event of this turn may still name it, and so may a queued relay().
  worker_.loop().defer([this] { delete this; });
}

}  // namespace holdfast::proxy
