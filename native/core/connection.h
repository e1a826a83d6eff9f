#pragma once

#include <memory>
#include <vector>

#include "counters.h"
#include "event_loop.h"
#include "flow.h"
#include "intrusive_list.h"
#include "socket_address.h"
#include "unique_fd.h"

namespace holdfast::proxy {

class Listener;
class Worker;
struct Upstream;

/// A place among all connections of a worker, and one among those of an endpoint.
struct WorkerHook : ListHook {};
struct UpstreamHook : ListHook {};

/// One accepted connection: dials endpoints until one answers, before it reads a byte of the client; then relays both ways until both
/// streams have ended or one side breaks. Belongs to its worker's thread; frees itself at the end of the turn in which it ended.
///
/// A half-close is carried on as such. A reset is carried on as a reset, after the bytes before it have been acknowledged or 5 s have passed.
class Connection final : public WorkerHook, public UpstreamHook {
 public:
  static void open(Worker& worker, std::shared_ptr<Listener> listener, net::UniqueFd client);

  /// Its endpoint takes no new connections: if it is still dialled, the next one is.
  void endpoint_withdrawn();
  /// Resets both sides. A cut stream must not look like a whole one, so there is no FIN.
  void abort(Outcome outcome);

 private:
  enum class Phase : std::uint8_t { dialling, relaying, ended };
  enum class Attempt : std::uint8_t { begun, failed, no_resources };

  struct Side final : net::EventHandler {
    explicit Side(Connection& owner) : owner(owner) {}
    void on_event(std::uint32_t events) override { owner.on_side_event(*this, events); }

    Connection& owner;
    net::UniqueFd fd;
  };

  Connection(Worker& worker, std::shared_ptr<Listener> listener, net::UniqueFd client);

  void dial();
  Attempt begin_attempt(Upstream& upstream);
  void attempt_failed();
  void leave_attempt();
  void wait_for_resources(int error);
  void on_dial_event(std::uint32_t events);
  void connected(std::uint32_t events);

  void on_side_event(Side& side, std::uint32_t events);
  void take_events(Side& side, std::uint32_t events);
  void relay();
  void settle_break(Flow::State up, Flow::State down);
  void end(Outcome outcome);

  Worker& worker_;
  std::shared_ptr<Listener> listener_;
  std::shared_ptr<ListenerCounters> counters_;
  std::shared_ptr<EndpointCounters> endpoint_counters_;
  Upstream* upstream_ = nullptr;
  Side client_side_{*this};
  Side upstream_side_{*this};
  Flow to_upstream_;
  Flow to_client_;
  Phase phase_ = Phase::dialling;
  bool fin_to_upstream_ = false;
  bool fin_to_client_ = false;
  bool queued_ = false;
  net::TimerId timer_;
  net::Clock::time_point give_up_{};
  std::vector<net::SocketAddress> tried_;
};

}  // namespace holdfast::proxy
