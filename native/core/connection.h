#pragma once

#include <memory>
#include <vector>

#include "counters.h"
#include "event_loop.h"
#include "flow.h"
#include "intrusive_list.h"
#include "proxy_header.h"
#include "socket_address.h"
#include "unique_fd.h"

namespace holdfast::proxy {

class Listener;
class Worker;
struct Upstream;

/// A place among all connections of a worker, and one among those of an endpoint.
struct WorkerHook : ListHook {};
struct UpstreamHook : ListHook {};

/// One accepted connection: reads the client's PROXY header when there has to be one, dials endpoints until one answers, before it reads a
/// byte of what follows; then relays both ways until both streams have ended or one side breaks. Belongs to its worker's thread; frees
/// itself at the end of the turn in which it ended.
///
/// A half-close is carried on as such. A reset is carried on as a reset, after the bytes before it have been acknowledged or 5 s have passed.
///
/// connection.cc has its beginning and its dials, connection_relay.cc what follows and its end.
class Connection final : public WorkerHook, public UpstreamHook {
 public:
  static void open(Worker& worker, std::shared_ptr<Listener> listener, net::UniqueFd client, const net::SocketAddress& from);

  /// Its endpoint takes no new connections: if it is still dialled, the next one is.
  void endpoint_withdrawn();
  /// Resets both sides. A cut stream must not look like a whole one, so there is no FIN.
  void abort(Outcome outcome);
  /// It has lasted: what is not worth a call for a short connection is done now.
  void settle() noexcept;

 private:
  enum class Phase : std::uint8_t { header, dialling, relaying, ended };
  enum class Attempt : std::uint8_t { begun, failed, no_resources };

  struct Side final : net::EventHandler {
    explicit Side(Connection& owner) : owner(owner) {}
    void on_event(std::uint32_t events) override { owner.on_side_event(*this, events); }

    Connection& owner;
    net::UniqueFd fd;
  };
  /// What is known of the client until an endpoint is connected.
  struct Beginning {
    net::SocketAddress client;
    /// From the client's header.
    std::optional<ProxyAddresses> told;
    /// Its header as far as it has come, then what was read behind it.
    std::vector<std::uint8_t> bytes;
    std::vector<net::SocketAddress> tried;
  };

  Connection(Worker& worker, std::shared_ptr<Listener> listener, net::UniqueFd client, const net::SocketAddress& from);

  void await_header();
  void read_header();
  void header_arrived(const ParsedHeader& header);

  void dial();
  Attempt begin_attempt(Upstream& upstream);
  void watch_attempt();
  void attempt_failed(int error);
  void leave_attempt();
  void wait_for_resources(int error);
  void on_dial_event(std::uint32_t events);
  void connected(std::uint32_t events);
  void send_header();
  bool watch_client();

  void on_side_event(Side& side, std::uint32_t events);
  void take_events(Side& side, std::uint32_t events);
  void relay();
  void settle_break(Flow::State up, Flow::State down);
  void carry_on(Flow::State up, Flow::State down);
  void watch_idleness(std::chrono::milliseconds left);
  void end(Outcome outcome);

  Worker& worker_;
  std::shared_ptr<Listener> listener_;
  std::shared_ptr<ListenerCounters> counters_;
  std::shared_ptr<EndpointCounters> endpoint_counters_;
  Upstream* upstream_ = nullptr;
  Side client_side_{*this};
  Side upstream_side_{*this};
  Flow to_upstream_{Flow::Promptness::at_second_send};
  Flow to_client_{Flow::Promptness::inherited};
  Phase phase_ = Phase::dialling;
  bool fin_to_upstream_ : 1 = false;
  bool fin_to_client_ : 1 = false;
  bool queued_ : 1 = false;
  bool client_watched_ : 1 = false;
  bool client_announces_room_ : 1 = false;
  bool settled_ : 1 = false;
  /// Milliseconds; 0: it may be idle for ever.
  std::uint32_t idle_ = 0;
  net::TimerId timer_;
  net::TimerId idle_timer_;
  net::Clock::time_point begun_ = net::Clock::now();
  /// Of the dial that is under way, or was the last.
  net::Clock::time_point dialled_{};
  net::Clock::time_point give_up_{};
  net::Clock::time_point last_moved_{};
  std::unique_ptr<Beginning> beginning_;
};

}  // namespace holdfast::proxy
