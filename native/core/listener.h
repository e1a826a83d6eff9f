#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "balancer.h"
#include "connection.h"
#include "event_loop.h"
#include "listener_update.h"

namespace holdfast::proxy {

/// An endpoint as one worker sees it; kept while it is in the table or has connections.
struct Upstream {
  net::SocketAddress address;
  std::shared_ptr<EndpointCounters> counters;
  /// Those that dial it and those that are connected to it.
  IntrusiveList<UpstreamHook> connections;
  /// Set while it is withdrawn.
  std::shared_ptr<Drain> drain;
  net::TimerId deadline;
  std::uint64_t cut = 0;
};

/// A listener as one worker sees it: accepts, chooses endpoints, drains those that are withdrawn. Goes on without a configuration while
/// connections of a removed listener drain.
class Listener final : public net::EventHandler, public std::enable_shared_from_this<Listener> {
 public:
  Listener(Worker& worker, ListenerId id);
  ~Listener() { close(); }

  void update(const ListenerUpdate& update);
  /// Accepts no more. Connections go on.
  void close() noexcept;
  /// Takes up accepting after a pause.
  void resume() noexcept;
  void on_event(std::uint32_t events) override;

  /// Null when every endpoint was tried.
  Upstream* choose(const Request& request);
  /// A connection of `upstream` has ended.
  void released(Upstream& upstream);

  const std::shared_ptr<ListenerCounters>& counters() const noexcept { return counters_; }
  ListenerId id() const noexcept { return id_; }
  /// Null while connections of a removed listener drain.
  const ListenerConfig* config() const noexcept { return config_.get(); }
  /// Nothing keeps it any more.
  bool gone() const noexcept { return !config_ && upstreams_.empty(); }

 private:
  void take_socket(const std::shared_ptr<ListenSocket>& socket);
  void take_endpoints(const ListenerUpdate& update);
  void withdraw(const Withdrawal& withdrawal, std::chrono::milliseconds patience);
  void reinstate(Upstream& upstream) noexcept;
  void cut(Upstream& upstream);
  void drained(Upstream& upstream);
  void park();
  void take_client(net::UniqueFd client, const net::SocketAddress& from);
  void refuse(const net::UniqueFd& client);

  Worker& worker_;
  const ListenerId id_;
  std::shared_ptr<const ListenerConfig> config_;
  std::shared_ptr<ListenSocket> socket_;
  bool parked_ = false;
  /// How many the next event may accept: more only while there are more, so that the accept that finds nobody is rare.
  int accept_most_ = 1;
  std::shared_ptr<ListenerCounters> counters_;
  Balancer balancer_;
  std::map<net::SocketAddress, std::unique_ptr<Upstream>> upstreams_;
  /// By the balancer's index.
  std::vector<Upstream*> choices_;
};

}  // namespace holdfast::proxy
