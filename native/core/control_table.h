#pragma once

#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "listener_update.h"

namespace holdfast::proxy {

/// What one process hands over to the next. The descriptor stays its holder's.
struct ListeningSocket {
  Protocol protocol;
  net::SocketAddress bound;
  int fd;
};

/// How an upserted listener came out.
struct ListenResult {
  ListenerId id;
  /// The port it listens on; 0 with an error.
  std::uint16_t port = 0;
  std::optional<ListenError> error;
};

struct EndpointStats {
  net::SocketAddress address;
  std::uint64_t active;
  std::uint64_t total;
  bool draining;
  bool ejected;
};

struct HistogramStats {
  /// By class, the last one without a bound.
  std::array<std::uint64_t, kBounds + 1> classes{};
  std::uint64_t sum_us = 0;
};

struct TimesStats {
  HistogramStats dial;
  HistogramStats connection;
};

struct ListenerStats {
  ListenerId id;
  std::uint64_t active;
  std::uint64_t ended[kOutcomes];
  std::uint64_t bytes_in;
  std::uint64_t bytes_out;
  std::uint64_t dial_failures;
  std::uint64_t limited;
  std::uint64_t evicted;
  std::uint64_t dropped;
  /// Of connections; empty until there was one.
  std::optional<TimesStats> times;
  std::vector<EndpointStats> endpoints;
};

/// The table as the control side knows it: opens the sockets, and says to the workers what is new. One thread at a time.
class ControlTable {
 public:
  explicit ControlTable(std::size_t workers) : workers_(workers) {}

  struct Applied {
    /// One per upsert, in order.
    std::vector<ListenResult> results;
    /// What really changed: nothing when the same delta is applied again.
    UpdateBatch updates;
  };

  /// Sockets move within a delta: an address that one listener gives up is taken over by another without being closed, and a listener's new
  /// socket is open before its old one is closed.
  Applied apply(const TableDelta& delta);

  void close_all() noexcept;

  /// Those that listen.
  std::vector<ListeningSocket> sockets() const;
  /// Of another process: a listener that wants its address takes it over instead of opening one. False, and closed, when it is no such socket.
  bool inherit(net::UniqueFd fd, Protocol protocol);
  /// Closes those that nobody has taken.
  void drop_inherited() noexcept { inherited_.clear(); }

  /// Those of which something changed since the last call: with 10,000 listeners of which few are used reading takes 1 ms.
  std::vector<ListenerStats> changed_stats();
  std::optional<ListenerStats> stats(ListenerId id) const;
  std::size_t listening() const noexcept { return listening_; }

 private:
  struct EndpointRecord {
    std::shared_ptr<EndpointCounters> counters;
    bool draining = false;
  };
  /// What `changed_stats` saw last.
  struct Reported {
    std::uint64_t sum = 0;
    /// Its row may change though its counters do not: it is new or changed, has connections, or an endpoint that will return.
    bool restless = true;
  };
  struct Record {
    /// Null when it was removed, and its endpoints drain.
    std::shared_ptr<const ListenerConfig> config;
    std::shared_ptr<ListenSocket> socket;
    std::shared_ptr<ListenerCounters> counters;
    std::shared_ptr<AffinityTable> affinity;
    std::map<net::SocketAddress, EndpointRecord> endpoints;
    Reported reported;
  };
  /// TCP and UDP may have the same address.
  using SocketKey = std::pair<Protocol, net::SocketAddress>;
  using Spares = std::map<SocketKey, std::shared_ptr<ListenSocket>>;

  Spares give_up_sockets(const TableDelta& delta);
  /// One that is open already; null when there is none.
  std::shared_ptr<ListenSocket> found(const ListenerConfig& config, Spares& spares);
  void remove(ListenerId id, std::vector<ListenerUpdate>& updates);
  ListenResult upsert(const ListenerConfig& config, Spares& spares, std::vector<ListenerUpdate>& updates);
  std::optional<ListenError> open(Record& record, const ListenerConfig& config, Spares& spares);
  std::vector<Withdrawal> withdraw_missing(ListenerId id, Record& record, const ListenerConfig* config);
  void forget_removed();
  static ListenerStats stats_of(ListenerId id, const Record& record);

  const std::size_t workers_;
  std::unordered_map<ListenerId, Record> records_;
  /// UDP sockets that were given up, and that workers keep while flows drain, as replies leave from them: an address that is wanted again
  /// meanwhile is had through them.
  std::map<SocketKey, std::weak_ptr<ListenSocket>> lingering_;
  Spares inherited_;
  /// Those whose connections drain; looked through at each apply.
  std::vector<ListenerId> removed_;
  std::size_t listening_ = 0;
};

}  // namespace holdfast::proxy
