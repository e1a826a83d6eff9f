#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "event_loop.h"
#include "intrusive_list.h"
#include "udp_client.h"
#include "unique_fd.h"

namespace holdfast::proxy {

class UdpListener;
struct UdpEndpoint;

/// A place among a listener's flows and among all of a worker, both by their last datagram; and one among those of an endpoint.
struct UdpIdleHook : ListHook {};
struct UdpWorkerHook : ListHook {};
struct UdpEndpointHook : ListHook {};

/// A client of a listener, and the socket that is connected to its endpoint. What happens to it is the listener's affair.
struct UdpFlow final : net::EventHandler, UdpIdleHook, UdpWorkerHook, UdpEndpointHook {
  void on_event(std::uint32_t events) override;

  UdpListener* listener = nullptr;
  /// Null when there is no socket: its endpoint failed, and the client's next datagram chooses another.
  UdpEndpoint* endpoint = nullptr;
  /// In the flow table's chain, or in the pool's.
  UdpFlow* next = nullptr;
  /// Endpoints that failed since the last reply; none in most flows' life.
  std::unique_ptr<std::vector<net::SocketAddress>> failed;
  net::Clock::time_point last{};
  UdpClient client;
  net::UniqueFd fd;
  /// Up to two are counted.
  std::uint8_t requests = 0;
  std::uint8_t replies = 0;
  /// The place among the groups of the batch that is being passed on, or kNoGroup.
  std::uint8_t group = kNoGroup;
  /// The client's datagrams find it. Not so when its endpoint was withdrawn: it still carries replies.
  bool reachable = false;

  static constexpr std::uint8_t kNoGroup = 0xff;

  /// One request and one reply, as a DNS query has.
  bool answered() const noexcept { return requests == 1 && replies == 1; }
};

/// Memory for a worker's flows, in blocks that are kept: as much as the most flows at one time needed.
class UdpFlowPool {
 public:
  UdpFlow* take();
  /// Not before the end of the turn: an event that was fetched may still name it.
  void give_back(UdpFlow* flow) noexcept;

 private:
  static constexpr std::size_t kBlock = 64;

  std::vector<std::unique_ptr<UdpFlow[]>> blocks_;
  UdpFlow* free_ = nullptr;
};

/// A listener's reachable flows by client: chains that grow with them, four bytes and more of table for each.
class UdpFlowTable {
 public:
  UdpFlowTable();

  UdpFlow* find(const UdpClient& client) const noexcept;
  /// No other of this client is in it.
  void insert(UdpFlow& flow);
  void remove(UdpFlow& flow) noexcept;

 private:
  std::size_t bucket(const UdpClient& client) const noexcept { return client.hash(seed_) & (buckets_.size() - 1); }
  void grow();

  const std::uint64_t seed_;
  std::size_t size_ = 0;
  std::vector<UdpFlow*> buckets_;
};

}  // namespace holdfast::proxy
