#include "udp_listener.h"

#include <sys/epoll.h>

#include <algorithm>

#include "udp_relay.h"
#include "udp_socket.h"
#include "worker.h"

namespace holdfast::proxy {
namespace {

/// A request and its reply and nothing more: a DNS query, whose client has moved on to another port. At 5,000 queries a second 10,000
/// sockets are open, not the 300,000 of the usual 60 s. A client that waits longer reaches the endpoint from another port.
constexpr auto kAnsweredPatience = std::chrono::seconds(2);
/// Flows end up to this late, so that thousands a second do not each have a timer's event.
constexpr auto kSweepGap = std::chrono::milliseconds(10);
/// Ended in one turn: each closes a socket, about 3 us.
constexpr int kSweepBatch = 256;
constexpr auto kWatchRetry = std::chrono::milliseconds(100);
/// What an Ethernet frame carries (1,500 bytes less the headers). Larger segments are refused on most ways.
constexpr std::size_t kMostSegment = 1'472;

UdpFlow& flow_at(UdpIdleHook& hook) noexcept { return static_cast<UdpFlow&>(hook); }

}  // namespace

UdpListener::UdpListener(UdpRelay& relay, ListenerId id)
    : relay_(relay), id_(id), balancer_(static_cast<std::uint32_t>(relay.worker().index())), segment_limit_(kMostSegment) {}

UdpListener::~UdpListener() {
  cut();
  relay_.worker().loop().cancel(timer_);
  relay_.worker().loop().cancel(watch_retry_);
  for (const auto& [address, endpoint] : endpoints_) relay_.worker().loop().cancel(endpoint->deadline);
  leave_socket();
}

ListenerBlock& UdpListener::block() noexcept { return counters_->of(relay_.worker().index()); }

// What is listened to, and who answers.

void UdpListener::update(const ListenerUpdate& update) {
  // Drains that begin with a removal have what the last configuration said.
  const auto patience = update.config ? update.config->drain : config_ ? config_->drain : std::chrono::milliseconds(0);
  config_ = update.config;
  if (update.counters) counters_ = update.counters;
  take_endpoints(update);
  for (const Withdrawal& withdrawal : update.withdrawn) withdraw(withdrawal, patience);
  if (config_) take_socket(update.socket);
  else refuse_from_now();
  sweep();
}

void UdpListener::take_socket(const std::shared_ptr<ListenSocket>& socket) {
  if (socket != socket_) {
    cut();  // no reply can come from the old address any more
    leave_socket();
    socket_ = socket;
  }
  if (!socket_ || socket_->owner() != relay_.worker().index() || stopping_) return;
  if (choices_.empty()) refuse_clients(socket_->fd(), socket_->bound());
  else accept_clients(socket_->fd());
  watch_socket();
}

/// In the same delta the one that had it may come after this one.
void UdpListener::watch_socket() {
  net::EventLoop& loop = relay_.worker().loop();
  loop.cancel(watch_retry_);
  UdpListener* reader = relay_.reader(socket_.get());
  if (reader == this) return;
  if (reader != nullptr) reader->leave_socket();
  if (loop.add(socket_->fd(), EPOLLIN, *this) == 0) return relay_.set_reader(socket_.get(), this);
  watch_retry_ = loop.after(kWatchRetry, [this] {
    watch_retry_ = {};
    if (socket_ && !stopping_) watch_socket();
  });
}

/// Reads no more. Replies can still be sent.
void UdpListener::leave_socket() noexcept {
  relay_.worker().loop().cancel(watch_retry_);
  if (!socket_ || relay_.reader(socket_.get()) != this) return;
  relay_.worker().loop().remove(socket_->fd());
  relay_.set_reader(socket_.get(), nullptr);
}

/// The socket stays for replies of flows that drain. Another listener may take it over in this turn; if none does, clients are refused.
void UdpListener::refuse_from_now() {
  leave_socket();
  if (!socket_ || socket_->owner() != relay_.worker().index()) return;
  relay_.worker().loop().defer([socket = socket_, &relay = relay_] {
    if (relay.reader(socket.get()) == nullptr) refuse_clients(socket->fd(), socket->bound());
  });
}

void UdpListener::take_endpoints(const ListenerUpdate& update) {
  choices_.clear();
  static const std::vector<Endpoint> none;
  const std::vector<Endpoint>& endpoints = config_ ? config_->endpoints : none;
  for (std::size_t i = 0; i < endpoints.size(); ++i) {
    std::unique_ptr<UdpEndpoint>& endpoint = endpoints_[endpoints[i].address];
    if (!endpoint) endpoint = std::make_unique<UdpEndpoint>();
    endpoint->address = endpoints[i].address;
    endpoint->counters = update.endpoint_counters[i];
    if (endpoint->drain) reinstate(*endpoint);
    choices_.push_back(endpoint.get());
  }
  if (config_) balancer_.assign(*config_, update.endpoint_counters, update.affinity);
  else balancer_.clear();
}

/// Its clients that have not moved meanwhile stay with it.
void UdpListener::reinstate(UdpEndpoint& endpoint) {
  relay_.worker().loop().cancel(endpoint.deadline);
  endpoint.drain.reset();
  endpoint.cut = 0;
  endpoint.flows.for_each([this](UdpEndpointHook& hook) {
    auto& flow = static_cast<UdpFlow&>(hook);
    if (!flow.reachable && table_.find(flow.client) == nullptr) table_.insert(flow);
  });
}

/// Its clients' next datagrams go elsewhere at once (faults.md 11); its replies are carried until the deadline.
void UdpListener::withdraw(const Withdrawal& withdrawal, std::chrono::milliseconds patience) {
  const auto found = endpoints_.find(withdrawal.endpoint);
  if (found == endpoints_.end()) return withdrawal.drain->leave(0, relay_.worker().sink());
  UdpEndpoint& endpoint = *found->second;
  endpoint.flows.for_each([this](UdpEndpointHook& hook) { table_.remove(static_cast<UdpFlow&>(hook)); });
  endpoint.drain = withdrawal.drain;
  if (endpoint.flows.empty()) return drained(endpoint);
  endpoint.deadline = relay_.worker().loop().after(patience, [this, &endpoint] {
    endpoint.deadline = {};
    cut(endpoint);
  });
}

void UdpListener::cut(UdpEndpoint& endpoint) {
  const auto drain = std::exchange(endpoint.drain, nullptr);  // the last flow's end must not free what is walked here
  while (!endpoint.flows.empty()) {
    ++endpoint.cut;
    end(static_cast<UdpFlow&>(endpoint.flows.front()), Outcome::drained);
  }
  endpoint.drain = drain;
  drained(endpoint);
}

void UdpListener::drained(UdpEndpoint& endpoint) {
  relay_.worker().loop().cancel(endpoint.deadline);
  endpoint.drain->leave(endpoint.cut, relay_.worker().sink());
  endpoints_.erase(net::SocketAddress(endpoint.address));
  if (gone()) relay_.forget(id_);
}

void UdpListener::stop(bool handed_over) {
  stopping_ = true;
  if (handed_over) leave_socket();
  else refuse_from_now();
  sweep();
}

void UdpListener::cut() {
  for (IdleList* flows : {&answered_, &active_}) {
    while (!flows->empty()) end(flow_at(flows->front()), Outcome::drained);
  }
}

// How long flows last.

net::Clock::time_point UdpListener::due(const UdpFlow& flow) const noexcept {
  const bool ends = config_ && config_->idle.count() != 0;
  if (flow.answered() || stopping_) {
    return flow.last + (ends ? std::min<net::Clock::duration>(config_->idle, kAnsweredPatience) : kAnsweredPatience);
  }
  return ends ? flow.last + config_->idle : net::Clock::time_point::max();
}

void UdpListener::touch(UdpFlow& flow, net::Clock::time_point now) {
  flow.last = now;
  (flow.answered() ? answered_ : active_).push_back(flow);
  relay_.touched(flow);
  const auto when = due(flow);
  if (!timer_ || when < timer_.deadline) wake_at(when);
}

void UdpListener::wake_at(net::Clock::time_point when) {
  relay_.worker().loop().cancel(timer_);
  if (when == net::Clock::time_point::max()) return;
  timer_ = relay_.worker().loop().at(when, [this] {
    timer_ = {};
    sweep();
  });
}

/// Ends the flows whose time has come, as many as one turn should.
void UdpListener::sweep() {
  const auto now = net::Clock::now();
  auto next = net::Clock::time_point::max();
  int left = kSweepBatch;
  for (IdleList* flows : {&answered_, &active_}) {
    while (!flows->empty()) {
      UdpFlow& oldest = flow_at(flows->front());
      const auto when = due(oldest);
      if (when > now || left == 0) {
        next = std::min(next, when);
        break;
      }
      end(oldest, Outcome::completed);
      --left;
    }
  }
  wake_at(next == net::Clock::time_point::max() ? next : std::max(next, left == 0 ? now : now + kSweepGap));
}

UdpFlow* UdpListener::oldest() noexcept {
  if (answered_.empty() && active_.empty()) return nullptr;
  if (answered_.empty()) return &flow_at(active_.front());
  if (active_.empty()) return &flow_at(answered_.front());
  UdpFlow& answered = flow_at(answered_.front());
  UdpFlow& active = flow_at(active_.front());
  return answered.last <= active.last ? &answered : &active;
}

/// Its place in the table stays: see fail().
void UdpListener::close(UdpFlow& flow, Outcome outcome) {
  if (flow.endpoint == nullptr) return;
  ListenerBlock& counts = block();
  counts.ended[static_cast<std::size_t>(outcome)].add(1);
  UdpEndpoint& endpoint = *std::exchange(flow.endpoint, nullptr);
  endpoint.counters->of(relay_.worker().index()).closed.add(1);
  endpoint.counters->load.down();
  flow.fd.reset();
  flow.UdpEndpointHook::unlink();
  if (endpoint.drain && endpoint.flows.empty()) drained(endpoint);
}

void UdpListener::end(UdpFlow& flow, Outcome outcome) {
  table_.remove(flow);
  flow.UdpIdleHook::unlink();
  flow.failed.reset();
  close(flow, outcome);
  counters_->open.down();
  relay_.release(flow);
}

}  // namespace holdfast::proxy
