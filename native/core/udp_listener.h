#pragma once

#include <array>
#include <map>
#include <memory>
#include <vector>

#include "balancer.h"
#include "event_loop.h"
#include "listener_update.h"
#include "udp_batch.h"
#include "udp_flow.h"

namespace holdfast::proxy {

class UdpRelay;

/// An endpoint of a UDP listener as one worker sees it; kept while it is in the table or has flows.
struct UdpEndpoint {
  net::SocketAddress address;
  std::shared_ptr<EndpointCounters> counters;
  IntrusiveList<UdpEndpointHook> flows;
  /// Set while it is withdrawn.
  std::shared_ptr<Drain> drain;
  net::TimerId deadline;
  std::uint64_t cut = 0;
};

/// A UDP listener as one worker sees it: gives each client a flow to one endpoint, and ends flows that are idle, failed, withdrawn or in
/// the way. Only the worker that owns the socket ever has flows. Goes on without a configuration while flows of a removed listener drain.
class UdpListener final : public net::EventHandler {
 public:
  UdpListener(UdpRelay& relay, ListenerId id);
  ~UdpListener();

  void update(const ListenerUpdate& update);
  /// Clients are refused from now on, or are those of the process that the socket was handed to; flows that are quiet end soon.
  void stop(bool handed_over);
  /// Ends every flow now.
  void cut();
  void on_event(std::uint32_t events) override;
  /// `flow` has replies, or an error.
  void on_replies(UdpFlow& flow, std::uint32_t events);
  /// The flow gives way to a newer one.
  void evict(UdpFlow& flow);

  const std::shared_ptr<ListenSocket>& socket() const noexcept { return socket_; }
  ListenerBlock& block() noexcept;
  std::size_t& segment_limit() noexcept { return segment_limit_; }
  bool removed() const noexcept { return !config_; }
  /// Nothing keeps it any more.
  bool gone() const noexcept { return !config_ && endpoints_.empty(); }

 private:
  using IdleList = IntrusiveList<UdpIdleHook>;
  /// The datagrams of one flow in a batch, in order, as a chain of places.
  struct Group {
    UdpFlow* flow;
    std::uint8_t first;
    std::uint8_t last;
    std::uint8_t size;
  };

  void take_socket(const std::shared_ptr<ListenSocket>& socket);
  void watch_socket();
  void leave_socket() noexcept;
  void refuse_from_now();
  void take_endpoints(const ListenerUpdate& update);
  void reinstate(UdpEndpoint& endpoint);
  void withdraw(const Withdrawal& withdrawal, std::chrono::milliseconds patience);
  void cut(UdpEndpoint& endpoint);
  void drained(UdpEndpoint& endpoint);

  UdpFlow* flow_of(const UdpClient& client);
  bool make_room();
  UdpFlow* oldest() noexcept;
  void join_group(UdpFlow& flow, std::uint8_t place);
  void pass_on(Group& group);
  bool send(UdpFlow& flow, UdpOutbox& out);
  bool connect(UdpFlow& flow);
  UdpEndpoint* choose(UdpFlow& flow);

  void touch(UdpFlow& flow, net::Clock::time_point now);
  void fail(UdpFlow& flow);
  void close(UdpFlow& flow, Outcome outcome);
  void end(UdpFlow& flow, Outcome outcome);
  net::Clock::time_point due(const UdpFlow& flow) const noexcept;
  void wake_at(net::Clock::time_point due);
  void sweep();

  UdpRelay& relay_;
  const ListenerId id_;
  std::shared_ptr<const ListenerConfig> config_;
  std::shared_ptr<ListenSocket> socket_;
  std::shared_ptr<ListenerCounters> counters_;
  bool stopping_ = false;
  Balancer balancer_;
  std::map<net::SocketAddress, std::unique_ptr<UdpEndpoint>> endpoints_;
  /// By the balancer's index.
  std::vector<UdpEndpoint*> choices_;

  UdpFlowTable table_;
  /// By the last datagram, the oldest first: those that had one request and one reply, and the others.
  IdleList answered_;
  IdleList active_;
  net::TimerId timer_;
  net::TimerId watch_retry_;
  std::size_t segment_limit_;

  /// When the batch that is being passed on was read.
  net::Clock::time_point now_{};
  std::array<Group, kUdpBatch> groups_;
  std::size_t groups_used_ = 0;
  std::array<std::uint8_t, kUdpBatch> following_;
};

}  // namespace holdfast::proxy
