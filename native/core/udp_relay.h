#pragma once

#include <memory>
#include <unordered_map>

#include "listener_update.h"
#include "udp_batch.h"
#include "udp_flow.h"
#include "udp_listener.h"

namespace holdfast::proxy {

class Worker;

/// A worker's UDP side: its listeners, the memory that they share, and the replies of one turn.
class UdpRelay {
 public:
  explicit UdpRelay(Worker& worker) : worker_(worker) {}

  /// False when the update is none for UDP.
  bool apply(const ListenerUpdate& update);
  /// Clients are refused from now on, or are those of the process that the sockets were handed to; flows that nothing is expected of end soon.
  void stop(bool handed_over);
  void cut_all();
  bool empty() const noexcept { return flows_.empty(); }
  /// Forgets everything, at the end of the thread.
  void clear() noexcept;

  // For its listeners.
  Worker& worker() noexcept { return worker_; }
  /// Memory for a batch of requests while it is passed on.
  UdpInbox& requests() noexcept { return buffers().requests; }
  UdpOutbox& requests_out() noexcept { return buffers().requests_out; }
  /// Reads what `flow` has, a bounded part of it, and sends it to the client by the end of the turn. @return how many, or the negative errno.
  int take_replies(UdpFlow& flow);
  /// Sends what waits.
  void send_replies();

  UdpFlow& add(UdpListener& listener, const UdpClient& client);
  void release(UdpFlow& flow) noexcept;
  void touched(UdpFlow& flow) noexcept { flows_.push_back(flow); }
  /// A place among the connections and flows of all workers; `release` gives it back. False when there is none.
  bool take_place() noexcept;
  /// How many flows a listener may have that says nothing about it: one that is flooded leaves a quarter to the others.
  std::uint64_t most_of_one() const noexcept;
  /// Of all listeners' flows the one whose last datagram is the longest ago. Null when there is none.
  UdpFlow* oldest() noexcept;
  /// The listener that reads `socket`; null when none does.
  UdpListener* reader(const ListenSocket* socket) const noexcept;
  void set_reader(const ListenSocket* socket, UdpListener* listener);
  void forget(ListenerId id);

 private:
  struct Buffers {
    UdpInbox requests;
    UdpOutbox requests_out;
    UdpInbox replies;
    UdpOutbox replies_out;
  };

  /// Made when they are first needed: a worker without UDP has none.
  Buffers& buffers();
  void free_released() noexcept;

  Worker& worker_;
  std::unordered_map<ListenerId, std::unique_ptr<UdpListener>> listeners_;
  std::unordered_map<const ListenSocket*, UdpListener*> readers_;
  UdpFlowPool pool_;
  /// By their last datagram, the oldest first.
  IntrusiveList<UdpWorkerHook> flows_;
  /// Ended in this turn.
  UdpFlow* released_ = nullptr;

  std::unique_ptr<Buffers> buffers_;
  /// Whose replies wait, and where its socket is: it may be gone when they are sent.
  UdpListener* replying_ = nullptr;
  std::size_t replies_used_ = 0;
  bool reply_queued_ = false;
};

}  // namespace holdfast::proxy
