#pragma once

#include <functional>
#include <mutex>
#include <thread>

#include "event_loop.h"
#include "netlink_socket.h"
#include "nft_events.h"

namespace holdfast::nft {

/// Hears of changes that others make to any table, on a thread and a socket of its own. What was not yet taken is kept once for each table,
/// so that no crowd of events makes it grow. Safe from one thread at a time, which it never blocks for longer than a system call.
class Watcher {
 public:
  /// `notify` says that there is something to take, once until it is taken; on the watcher's thread, and must not block.
  explicit Watcher(std::function<void()> notify) : notify_(std::move(notify)) {}
  ~Watcher() { stop(); }

  /// Changes through the socket of `own_port` are not told. 0 or the negative errno. Once.
  int start(std::uint32_t own_port);

  /// Ends to hear, or begins again; 0 or the negative errno. A load of 30,000 services takes seven times as long while anyone listens, and half a
  /// gigabyte for a moment: pause, load, resume, and compare the generation for what happened in between.
  int pause() noexcept { return socket_.leave(kGroup); }
  int resume() noexcept { return socket_.join(kGroup); }

  Changes take();

  void stop() noexcept;

 private:
  struct Handler final : net::EventHandler {
    explicit Handler(Watcher& watcher) noexcept : watcher_(watcher) {}
    void on_event(std::uint32_t events) override;
    Watcher& watcher_;
  };

  static constexpr std::uint32_t kGroup = 7;  // NFNLGRP_NFTABLES

  void read();

  const std::function<void()> notify_;
  netlink::Socket socket_;
  net::EventLoop loop_;
  Handler handler_{*this};
  std::uint32_t own_port_ = 0;
  std::mutex mutex_;
  Changes changes_;
  std::thread thread_;
};

}  // namespace holdfast::nft
