// What UdpListener does with datagrams; udp_listener.cc has how it changes and how long flows last.

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>

#include "udp_listener.h"
#include "udp_relay.h"
#include "udp_socket.h"
#include "worker.h"

namespace holdfast::proxy {
namespace {

/// Endpoints that one batch of a flow is offered.
constexpr int kAttempts = 3;

/// The datagram's or the moment's fault, not the endpoint's.
bool is_datagrams_own(int error) noexcept {
  return error == EMSGSIZE || error == EINVAL || error == EPERM || error == EACCES || is_shortage(error);
}

void count_up(std::uint8_t& counter, std::size_t more) noexcept {
  counter = static_cast<std::uint8_t>(std::min<std::size_t>(counter + more, 2));
}

}  // namespace

/// One batch, then it is the next socket's turn; what is left makes another event.
void UdpListener::on_event(std::uint32_t) {
  UdpInbox& in = relay_.requests();
  const int count = in.receive(socket_->fd(), 0, kUdpBatch);
  if (count <= 0) return;
  now_ = net::Clock::now();
  groups_used_ = 0;
  UdpFlow* flow = nullptr;
  for (std::size_t place = 0; place < static_cast<std::size_t>(count); ++place) {
    if (in.cut(place)) {
      block().dropped.add(1);
      continue;
    }
    if (place == 0 || flow == nullptr || !(in.from(place) == flow->client)) flow = flow_of(in.from(place));
    if (flow != nullptr) join_group(*flow, static_cast<std::uint8_t>(place));
  }
  for (std::size_t i = 0; i < groups_used_; ++i) {
    if (groups_[i].flow != nullptr) pass_on(groups_[i]);
  }
}

void UdpListener::join_group(UdpFlow& flow, std::uint8_t place) {
  if (flow.group == UdpFlow::kNoGroup) {
    flow.group = static_cast<std::uint8_t>(groups_used_);
    groups_[groups_used_++] = {&flow, place, place, 1};
  } else {
    Group& group = groups_[flow.group];
    following_[group.last] = place;
    group.last = place;
    ++group.size;
  }
  count_up(flow.requests, 1);
  touch(flow, now_);
}

/// Null when the datagram goes nowhere; that is counted here.
UdpFlow* UdpListener::flow_of(const UdpClient& client) {
  UdpFlow* flow = table_.find(client);
  if (flow == nullptr && !choices_.empty() && !config_->refuse && make_room()) {
    flow = &relay_.add(*this, client);
    table_.insert(*flow);
  }
  if (flow == nullptr) {
    block().accepted.add(1);
    block().ended[static_cast<std::size_t>(Outcome::refused)].add(1);
    return nullptr;
  }
  return flow;
}

/// False when no flow can give way to another.
bool UdpListener::make_room() {
  const std::uint64_t most = config_->max_connections != 0 ? config_->max_connections : relay_.most_of_one();
  while (!counters_->open.up_to(most)) {
    UdpFlow* flow = oldest();
    if (flow == nullptr) return block().limited.add(1), false;
    evict(*flow);
  }
  while (!relay_.take_place()) {
    UdpFlow* flow = relay_.oldest();
    if (flow == nullptr) return counters_->open.down(), block().limited.add(1), false;
    flow->listener->evict(*flow);
  }
  return true;
}

/// What it has been sent goes first.
void UdpListener::evict(UdpFlow& flow) {
  if (flow.group != UdpFlow::kNoGroup) pass_on(groups_[flow.group]);
  block().evicted.add(1);
  end(flow, Outcome::completed);
}

void UdpListener::pass_on(Group& group) {
  UdpFlow& flow = *std::exchange(group.flow, nullptr);
  flow.group = UdpFlow::kNoGroup;
  UdpInbox& in = relay_.requests();
  UdpOutbox& out = relay_.requests_out();
  std::uint8_t place = group.first;
  for (std::size_t i = 0; i < group.size; ++i, place = following_[place]) out.add(nullptr, in.datagram(place), segment_limit_);
  for (int attempt = 0; attempt < kAttempts && !out.empty(); ++attempt) {
    if (!flow.fd && !connect(flow)) continue;
    if (!send(flow, out)) fail(flow);
  }
  block().dropped.add(out.left());
  out.clear();
}

/// False when the endpoint failed. What it has not been sent is still there.
bool UdpListener::send(UdpFlow& flow, UdpOutbox& out) {
  while (!out.empty()) {
    const UdpOutbox::Sent sent = out.send(flow.fd.get());
    block().bytes_in.add(sent.bytes);
    segment_limit_ = std::min(segment_limit_, sent.segment_limit);
    if (sent.error == 0) return true;
    if (sent.error == EAGAIN) {
      // A full buffer stays full for those behind.
      block().dropped.add(out.left());
      out.clear();
    } else if (is_datagrams_own(sent.error)) {
      block().dropped.add(out.drop_front());
    } else {
      return false;
    }
  }
  return true;
}

/// To an endpoint that has not failed this client. False when that failed too, or there is none, or no descriptor: then one is free now.
bool UdpListener::connect(UdpFlow& flow) {
  UdpEndpoint* endpoint = choose(flow);
  if (endpoint == nullptr) return false;
  flow.fd = connect_udp(endpoint->address);
  // EAGAIN: all 28,000 ports of net.ipv4.ip_local_port_range are in use; flows have one each.
  if (!flow.fd && (is_shortage(errno) || errno == EAGAIN)) {
    relay_.worker().pause_accept(errno);  // tells it
    UdpFlow* oldest = relay_.oldest();
    if (oldest != &flow && oldest->group == UdpFlow::kNoGroup) oldest->listener->evict(*oldest);
    return false;
  }
  if (flow.fd && relay_.worker().loop().add(flow.fd.get(), EPOLLIN, flow) != 0) return flow.fd.reset(), false;
  block().accepted.add(1);
  endpoint->counters->of(relay_.worker().index()).opened.add(1);
  endpoint->counters->load.up();
  endpoint->flows.push_back(flow);
  flow.endpoint = endpoint;
  if (flow.fd) return true;
  fail(flow);
  return false;
}

/// One that failed this client only when all have.
UdpEndpoint* UdpListener::choose(UdpFlow& flow) {
  const net::SocketAddress client = balancer_.needs_client() ? flow.client.address() : net::SocketAddress();
  Request request{&client, {}, now_};
  if (flow.failed) request.tried = *flow.failed;
  auto index = balancer_.pick(request);
  if (!index && flow.failed) {
    flow.failed.reset();
    request.tried = {};
    index = balancer_.pick(request);
  }
  return index ? choices_[*index] : nullptr;
}

/// An error that waits would be what the read says, and hide replies that came before it.
void UdpListener::on_replies(UdpFlow& flow, std::uint32_t events) {
  int error = (events & (EPOLLERR | EPOLLHUP)) != 0 ? take_error(flow.fd.get()) : 0;
  const int count = relay_.take_replies(flow);
  if (count > 0) {
    UdpEndpoint& endpoint = *flow.endpoint;
    if (flow.replies == 0) relay_.worker().dial_succeeded(id_, endpoint.address, *endpoint.counters);
    flow.failed.reset();
    count_up(flow.replies, static_cast<std::size_t>(count));
    touch(flow, net::Clock::now());
  } else if (count < 0 && count != -EAGAIN) {
    take_error(flow.fd.get());
    error = -count;
  }
  if (error != 0 && !is_datagrams_own(error)) fail(flow);
}

/// The endpoint is not there for this client. Its next datagram chooses another; until then the flow is only a memory of what failed.
void UdpListener::fail(UdpFlow& flow) {
  UdpEndpoint& endpoint = *flow.endpoint;
  block().dial_failures.add(1);
  relay_.worker().dial_failed(id_, endpoint.address, endpoint.counters);
  if (!flow.reachable) return end(flow, Outcome::reset);
  if (!flow.failed) flow.failed = std::make_unique<std::vector<net::SocketAddress>>();
  flow.failed->push_back(endpoint.address);
  close(flow, Outcome::reset);
  flow.replies = 0;
}

}  // namespace holdfast::proxy
