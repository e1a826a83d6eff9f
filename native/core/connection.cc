#include "connection.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>

#include "interest.h"
#include "listener.h"
#include "worker.h"

namespace holdfast::proxy {
namespace {

constexpr auto kHeaderPatience = std::chrono::seconds(5);
/// A client that goes away while dials take longer than this is noticed; registering it before costs every connection a wake-up.
constexpr auto kUnwatched = std::chrono::milliseconds(500);
constexpr auto kResourcePatience = std::chrono::seconds(5);
constexpr auto kResourceRetry = std::chrono::milliseconds(100);
constexpr std::chrono::milliseconds kLastTimeout{3'000};

/// This machine's fault, or a rule's on it: says nothing of the endpoint.
bool is_ours(int error) noexcept {
  return error == EADDRNOTAVAIL || error == EADDRINUSE || error == EAGAIN || error == EPERM || error == EACCES || is_shortage(error);
}

}  // namespace

void Connection::open(Worker& worker, std::shared_ptr<Listener> listener, net::UniqueFd client, const net::SocketAddress& from) {
  auto* connection = new Connection(worker, std::move(listener), std::move(client), from);  // freed by end()
  worker.connection_begun(*connection);
  if (connection->listener_->config()->accept_proxy) return connection->await_header();
  connection->dial();
}

Connection::Connection(Worker& worker, std::shared_ptr<Listener> listener, net::UniqueFd client, const net::SocketAddress& from)
    : worker_(worker), listener_(std::move(listener)), counters_(listener_->counters()), beginning_(std::make_unique<Beginning>()) {
  client_side_.fd = std::move(client);
  beginning_->client = from;
}

// The client's PROXY header.

void Connection::await_header() {
  phase_ = Phase::header;
  if (!watch_client()) return abort(Outcome::refused);
  timer_ = worker_.loop().after(kHeaderPatience, [this] {
    timer_ = {};
    abort(Outcome::refused);
  });
}

/// Reads on until there is nothing more: the end of the stream may not be announced again.
void Connection::read_header() {
  std::vector<std::uint8_t>& bytes = beginning_->bytes;
  for (;;) {
    const auto room = worker_.scratch().first(kMostProxyHeader);
    const ssize_t size = ::recv(client_side_.fd.get(), room.data(), room.size() - bytes.size(), 0);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) return;
    if (size <= 0) return abort(Outcome::refused);
    bytes.insert(bytes.end(), room.data(), room.data() + size);
    const ParsedHeader header = parse_proxy_header(bytes);
    if (header.state == ParsedHeader::State::complete) return header_arrived(header);
    if (header.state == ParsedHeader::State::malformed || bytes.size() == kMostProxyHeader) return abort(Outcome::refused);
  }
}

void Connection::header_arrived(const ParsedHeader& header) {
  worker_.loop().cancel(timer_);
  std::vector<std::uint8_t>& bytes = beginning_->bytes;
  bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(header.size));
  beginning_->told = header.addresses;
  if (header.addresses) beginning_->client = header.addresses->source;
  phase_ = Phase::dialling;
  dial();
}

// The way to an endpoint.

void Connection::dial() {
  for (;;) {
    Upstream* upstream = listener_->choose({&beginning_->client, beginning_->tried, net::Clock::now()});
    if (upstream == nullptr) return abort(Outcome::failed);
    upstream_ = upstream;
    upstream->connections.push_back(*this);
    upstream->counters->load.up();
    switch (begin_attempt(*upstream)) {
      case Attempt::begun:
        return watch_attempt();
      case Attempt::no_resources:
        return wait_for_resources(errno);
      case Attempt::failed:
        attempt_failed(errno);
    }
  }
}

Connection::Attempt Connection::begin_attempt(Upstream& upstream) {
  const net::RawAddress address(upstream.address);
  net::UniqueFd fd(::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return is_shortage(errno) ? Attempt::no_resources : Attempt::failed;
  if (::connect(fd.get(), address.data(), address.size()) != 0 && errno != EINPROGRESS) {
    const int error = errno;
    fd.reset();
    errno = error;
    return Attempt::failed;
  }
  // Not before connect: a socket that was never connected reports EPOLLHUP.
  if (worker_.loop().add(fd.get(), kInterest | EPOLLOUT, upstream_side_) != 0) return Attempt::no_resources;
  upstream_side_.fd = std::move(fd);
  return Attempt::begun;
}

void Connection::watch_attempt() {
  const ListenerConfig* config = listener_->config();
  const std::chrono::milliseconds patience = config != nullptr ? config->connect_timeout : kLastTimeout;
  dialled_ = net::Clock::now();
  const auto deadline = dialled_ + patience;
  const auto give_up = [this] {
    timer_ = {};
    attempt_failed(ETIMEDOUT);
    dial();
  };
  if (client_watched_ || patience <= kUnwatched) {
    timer_ = worker_.loop().at(deadline, give_up);
    return;
  }
  timer_ = worker_.loop().at(deadline - patience + kUnwatched, [this, deadline, give_up] {
    timer_ = worker_.loop().at(deadline, give_up);
    if (!watch_client()) abort(Outcome::failed);
  });
}

void Connection::attempt_failed(int error) {
  counters_->of(worker_.index()).dial_failures.add(1);
  beginning_->tried.push_back(upstream_->address);
  if (!is_ours(error)) worker_.dial_failed(listener_->id(), upstream_->address, upstream_->counters);
  leave_attempt();
}

void Connection::leave_attempt() {
  worker_.loop().cancel(timer_);
  UpstreamHook::unlink();
  upstream_->counters->load.down();
  upstream_ = nullptr;
  upstream_side_.fd.reset();
}

/// No descriptor or memory for the way up: the client waits, as those do that are not accepted yet.
void Connection::wait_for_resources(int error) {
  leave_attempt();
  worker_.pause_accept(error);
  const auto now = net::Clock::now();
  if (give_up_ == net::Clock::time_point{}) give_up_ = now + kResourcePatience;
  if (now >= give_up_ || !watch_client()) return abort(Outcome::failed);
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
  const int error = (events & (EPOLLERR | EPOLLHUP)) != 0 ? socket_error(upstream_side_.fd.get()) : 0;
  if (error != 0) {
    attempt_failed(error);
    dial();
  } else if ((events & EPOLLOUT) != 0) {
    connected(events);
  }
}

void Connection::connected(std::uint32_t events) {
  worker_.loop().cancel(timer_);
  worker_.dial_succeeded(listener_->id(), upstream_->address, *upstream_->counters);
  give_up_ = {};
  phase_ = Phase::relaying;
  endpoint_counters_ = upstream_->counters;
  endpoint_counters_->of(worker_.index()).opened.add(1);
  if (Times* times = counters_->of(worker_.index()).times()) times->dial.observe(kDialBounds, net::Clock::now() - dialled_);
  send_header();
  beginning_.reset();
  if (settled_) settle();
  if (const ListenerConfig* config = listener_->config(); config != nullptr && config->idle.count() > 0) {
    idle_ = static_cast<std::uint32_t>(config->idle.count());
    watch_idleness(config->idle);
  }
  // Most clients have spoken by now, so that their first bytes need no wake-up of their own.
  if (!client_watched_) to_upstream_.source_ready(false);
  take_events(upstream_side_, events);
  relay();
  if (phase_ == Phase::relaying && !watch_client()) abort(Outcome::reset);
}

/// The header goes before the client's bytes; `bytes_in` counts only those.
void Connection::send_header() {
  const ListenerConfig* config = listener_->config();
  const ProxyHeader version = config != nullptr ? config->send_proxy : ProxyHeader::none;
  std::vector<std::uint8_t>& bytes = beginning_->bytes;
  if (version == ProxyHeader::none && bytes.empty()) return;
  std::array<std::uint8_t, kMostWrittenHeader> header;
  std::size_t size = 0;
  if (version != ProxyHeader::none) {
    const ProxyAddresses own{beginning_->client, local_address(client_side_.fd.get())};
    size = write_proxy_header(version, beginning_->told.value_or(own), header);
  }
  bytes.insert(bytes.begin(), header.begin(), header.begin() + static_cast<std::ptrdiff_t>(size));
  to_upstream_.preload(bytes, size);
}

/// Its room is announced only once it has had none: else each registration would wake the worker to tell that there is some.
bool Connection::watch_client() {
  if (client_watched_) return true;
  client_announces_room_ = to_client_.blocked();
  const std::uint32_t room = client_announces_room_ ? std::uint32_t{EPOLLOUT} : 0;
  return client_watched_ = worker_.loop().add(client_side_.fd.get(), kInterest | room, client_side_) == 0;
}

}  // namespace holdfast::proxy
