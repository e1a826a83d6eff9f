#include "connection.h"

#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>

#include "listener.h"
#include "worker.h"

namespace holdfast::proxy {
namespace {

constexpr std::uint32_t kInterest = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLPRI | EPOLLET;
/// After these a read must go on to the end: an edge for what follows may already be spent.
constexpr std::uint32_t kUntilEnd = EPOLLRDHUP | EPOLLHUP | EPOLLERR | EPOLLPRI;

/// Per direction and turn: four full reads, then it is the next connection's turn.
constexpr std::size_t kTurnBudget = 4 * Worker::kScratchSize;

/// How long bytes before a reset may take to arrive, and how often that is looked at (the kernel has no event for it).
constexpr auto kResetPatience = std::chrono::seconds(5);
constexpr auto kResetPoll = std::chrono::milliseconds(5);

constexpr auto kResourcePatience = std::chrono::seconds(5);
constexpr auto kResourceRetry = std::chrono::milliseconds(100);

int socket_error(int fd) noexcept {
  int error = 0;
  socklen_t size = sizeof error;
  return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

int unacknowledged(int fd) noexcept {
  int bytes = 0;
  return ::ioctl(fd, SIOCOUTQ, &bytes) == 0 ? bytes : 0;
}

}  // namespace

void Connection::open(Worker& worker, std::shared_ptr<Listener> listener, net::UniqueFd client) {
  auto* connection = new Connection(worker, std::move(listener), std::move(client));  // freed by end()
  worker.connections().push_back(*connection);
  connection->dial();
}

Connection::Connection(Worker& worker, std::shared_ptr<Listener> listener, net::UniqueFd client)
    : worker_(worker), listener_(std::move(listener)), counters_(listener_->counters()) {
  client_side_.fd = std::move(client);
}

void Connection::dial() {
  for (;;) {
    Upstream* upstream = listener_->choose(tried_);
    if (upstream == nullptr) return abort(Outcome::failed);
    switch (begin_attempt(*upstream)) {
      case Attempt::begun:
        return;
      case Attempt::no_resources:
        return wait_for_resources(errno);
      case Attempt::failed:
        attempt_failed();
    }
  }
}

Connection::Attempt Connection::begin_attempt(Upstream& upstream) {
  const net::RawAddress address(upstream.address);
  net::UniqueFd fd(::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return is_shortage(errno) ? Attempt::no_resources : (upstream_ = &upstream, Attempt::failed);
  const int on = 1;
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(fd.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  const bool refused = ::connect(fd.get(), address.data(), address.size()) != 0 && errno != EINPROGRESS;
  upstream_ = &upstream;
  if (refused) return Attempt::failed;
  // Not before connect: a socket that was never connected reports EPOLLHUP.
  if (worker_.loop().add(fd.get(), kInterest, upstream_side_) != 0) return Attempt::no_resources;
  upstream_side_.fd = std::move(fd);
  upstream.connections.push_back(*this);
  timer_ = worker_.loop().after(listener_->connect_timeout(), [this] {
    timer_ = {};
    attempt_failed();
    dial();
  });
  return Attempt::begun;
}

void Connection::attempt_failed() {
  counters_->of(worker_.index()).dial_failures.add(1);
  tried_.push_back(upstream_->address);
  leave_attempt();
}

void Connection::leave_attempt() {
  worker_.loop().cancel(timer_);
  UpstreamHook::unlink();
  upstream_ = nullptr;
  upstream_side_.fd.reset();
}

/// No descriptor or memory for the way up: the client waits, as those do that are not accepted yet.
void Connection::wait_for_resources(int error) {
  upstream_ = nullptr;
  worker_.pause_accept(error);
  const auto now = net::Clock::now();
  if (give_up_ == net::Clock::time_point{}) give_up_ = now + kResourcePatience;
  if (now >= give_up_) return abort(Outcome::failed);
  timer_ = worker_.loop().after(kResourceRetry, [this] {
    timer_ = {};
    dial();
  });
}

void Connection::endpoint_withdrawn() {
  if (phase_ != Phase::dialling) return;
  leave_attempt();
  dial();
}

void Connection::on_dial_event(std::uint32_t events) {
  const bool failed = (events & (EPOLLERR | EPOLLHUP)) != 0 && socket_error(upstream_side_.fd.get()) != 0;
  if (failed) {
    attempt_failed();
    dial();
  } else if ((events & EPOLLOUT) != 0) {
    connected(events);
  }
}

void Connection::connected(std::uint32_t events) {
  worker_.loop().cancel(timer_);
  std::vector<net::SocketAddress>().swap(tried_);
  give_up_ = {};
  phase_ = Phase::relaying;
  endpoint_counters_ = upstream_->counters;
  endpoint_counters_->of(worker_.index()).opened.add(1);
  if (worker_.loop().add(client_side_.fd.get(), kInterest, client_side_) != 0) return abort(Outcome::reset);
  if ((events & ~static_cast<std::uint32_t>(EPOLLOUT)) == 0) return;  // the client's first event follows by itself
  take_events(upstream_side_, events);
  relay();
}

void Connection::on_side_event(Side& side, std::uint32_t events) {
  switch (phase_) {
    case Phase::dialling:
      return on_dial_event(events);
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
  const auto scratch = worker_.scratch();
  ListenerBlock& block = counters_->of(worker_.index());
  auto up = to_upstream_.pump(client, upstream, scratch, kTurnBudget, block.bytes_in);
  if (up == Flow::State::sink_failed) to_client_.source_broke();
  const auto down = to_client_.pump(upstream, client, scratch, kTurnBudget, block.bytes_out);
  if (down == Flow::State::sink_failed) {
    to_upstream_.source_broke();
    up = to_upstream_.pump(client, upstream, scratch, kTurnBudget, block.bytes_in);
  }
  const bool up_ended = up == Flow::State::ended;
  const bool down_ended = down == Flow::State::ended;
  if (up_ended && down_ended) return end(Outcome::completed);
  if (up_ended && !fin_to_upstream_) fin_to_upstream_ = ::shutdown(upstream, SHUT_WR) == 0;
  if (down_ended && !fin_to_client_) fin_to_client_ = ::shutdown(client, SHUT_WR) == 0;
  if (to_upstream_.broken() || to_client_.broken()) settle_break(up, down);
  const bool unfinished = up == Flow::State::unfinished || down == Flow::State::unfinished;
  if (!unfinished || queued_ || phase_ != Phase::relaying) return;
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

void Connection::abort(Outcome outcome) {
  reset_on_close(client_side_.fd.get());
  if (upstream_side_.fd) reset_on_close(upstream_side_.fd.get());
  end(outcome);
}

void Connection::end(Outcome outcome) {
  phase_ = Phase::ended;
  worker_.loop().cancel(timer_);
  client_side_.fd.reset();
  upstream_side_.fd.reset();
  counters_->of(worker_.index()).ended[static_cast<std::size_t>(outcome)].add(1);
  if (endpoint_counters_) endpoint_counters_->of(worker_.index()).closed.add(1);
  WorkerHook::unlink();
  UpstreamHook::unlink();
  if (upstream_ != nullptr) listener_->released(*upstream_);
  worker_.connection_ended();
  // A later event of this turn may still name it, and so may a queued relay().
  worker_.loop().defer([this] { delete this; });
}

}  // namespace holdfast::proxy
