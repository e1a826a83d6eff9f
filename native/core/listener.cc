#include "listener.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <limits>

#include "worker.h"

namespace holdfast::proxy {
namespace {

/// One turn's connections of one listener: enough to save wake-ups, few enough that other connections do not wait long (about 30 us each).
constexpr int kAcceptBatch = 32;

}  // namespace

Listener::Listener(Worker& worker, ListenerId id)
    : worker_(worker), id_(id), balancer_(static_cast<std::uint32_t>(worker.index())) {}

void Listener::update(const ListenerUpdate& update) {
  // Drains that begin with a removal have what the last configuration said.
  const auto patience = update.config ? update.config->drain : config_ ? config_->drain : std::chrono::milliseconds(0);
  config_ = update.config;
  if (update.counters) counters_ = update.counters;
  take_endpoints(update);
  take_socket(update.socket);
  for (const Withdrawal& withdrawal : update.withdrawn) withdraw(withdrawal, patience);
}

void Listener::take_socket(const std::shared_ptr<ListenSocket>& socket) {
  if (socket == socket_) return;
  close();
  socket_ = socket;
  parked_ = socket_ != nullptr;
  resume();
}

void Listener::close() noexcept {
  if (socket_ && !parked_) worker_.loop().remove(socket_->fd());
  socket_.reset();
  parked_ = false;
}

void Listener::resume() noexcept {
  if (!socket_ || !parked_) return;
  parked_ = false;
  // One worker is woken for a connection, not all.
  if (worker_.loop().add(socket_->fd(), EPOLLIN | EPOLLEXCLUSIVE, *this) != 0) park();
}

void Listener::park() {
  if (!std::exchange(parked_, true)) worker_.loop().remove(socket_->fd());
  worker_.resume_later(weak_from_this());
}

void Listener::take_endpoints(const ListenerUpdate& update) {
  choices_.clear();
  static const std::vector<Endpoint> none;
  const std::vector<Endpoint>& endpoints = config_ ? config_->endpoints : none;
  for (std::size_t i = 0; i < endpoints.size(); ++i) {
    std::unique_ptr<Upstream>& upstream = upstreams_[endpoints[i].address];
    if (!upstream) upstream = std::make_unique<Upstream>();
    upstream->address = endpoints[i].address;
    upstream->counters = update.endpoint_counters[i];
    reinstate(*upstream);
    choices_.push_back(upstream.get());
  }
  if (config_) balancer_.assign(*config_, update.endpoint_counters, update.affinity);
  else balancer_.clear();
}

void Listener::reinstate(Upstream& upstream) noexcept {
  worker_.loop().cancel(upstream.deadline);
  upstream.drain.reset();
  upstream.cut = 0;
}

void Listener::withdraw(const Withdrawal& withdrawal, std::chrono::milliseconds patience) {
  const auto found = upstreams_.find(withdrawal.endpoint);
  if (found == upstreams_.end()) return withdrawal.drain->leave(0, worker_.sink());
  Upstream& upstream = *found->second;
  upstream.connections.for_each([](UpstreamHook& hook) { static_cast<Connection&>(hook).endpoint_withdrawn(); });
  upstream.drain = withdrawal.drain;
  if (upstream.connections.empty()) return drained(upstream);
  upstream.deadline = worker_.loop().after(patience, [this, &upstream] {
    upstream.deadline = {};
    cut(upstream);
  });
}

void Listener::cut(Upstream& upstream) {
  const auto drain = std::exchange(upstream.drain, nullptr);  // the last connection's end must not free what is walked here
  while (!upstream.connections.empty()) {
    ++upstream.cut;
    static_cast<Connection&>(upstream.connections.front()).abort(Outcome::drained);
  }
  upstream.drain = drain;
  drained(upstream);
}

void Listener::released(Upstream& upstream) {
  if (upstream.drain && upstream.connections.empty()) drained(upstream);
}

void Listener::drained(Upstream& upstream) {
  worker_.loop().cancel(upstream.deadline);
  upstream.drain->leave(upstream.cut, worker_.sink());
  upstreams_.erase(net::SocketAddress(upstream.address));
  if (gone()) worker_.forget(id_);
}

Upstream* Listener::choose(const Request& request) {
  const auto index = balancer_.pick(request);
  return index ? choices_[*index] : nullptr;
}

void Listener::on_event(std::uint32_t) {
  if (!socket_) return;
  if (worker_.accept_paused()) return park();
  for (int i = 0; i < accept_most_; ++i) {
    sockaddr_storage from;
    socklen_t size = sizeof from;
    net::UniqueFd client(::accept4(socket_->fd(), reinterpret_cast<sockaddr*>(&from), &size, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (client) {
      take_client(std::move(client), net::SocketAddress::from(from));
    } else if (errno == EAGAIN) {
      accept_most_ = 1;
      return;
    } else if (is_shortage(errno)) {
      worker_.pause_accept(errno);
      return park();
    }
    // Others (ECONNABORTED, network errors: accept(2)) belong to that one connection.
  }
  accept_most_ = std::min(2 * accept_most_, kAcceptBatch);
}

void Listener::take_client(net::UniqueFd client, const net::SocketAddress& from) {
  ListenerBlock& block = counters_->of(worker_.index());
  block.accepted.add(1);
  if (choices_.empty() || config_->refuse) return refuse(client);
  const std::uint64_t most = config_->max_connections != 0 ? config_->max_connections : std::numeric_limits<std::uint64_t>::max();
  const bool own = counters_->open.up_to(most);
  if (own && worker_.limits().take()) return Connection::open(worker_, shared_from_this(), std::move(client), from);
  if (own) counters_->open.down();
  block.limited.add(1);
  refuse(client);
}

void Listener::refuse(const net::UniqueFd& client) {
  counters_->of(worker_.index()).ended[static_cast<std::size_t>(Outcome::refused)].add(1);
  reset_on_close(client.get());
}

}  // namespace holdfast::proxy
