#include "nft_watcher.h"

#include <linux/netfilter/nfnetlink.h>
#include <sys/socket.h>

#include <cerrno>

namespace holdfast::nft {
namespace {

/// Datagrams that are read before the other side hears of them: a flush of 60,000 elements is 60,000 events in far fewer turns.
constexpr int kTurn = 16;

}  // namespace

int Watcher::start(std::uint32_t own_port) {
  static_assert(kGroup == NFNLGRP_NFTABLES);
  own_port_ = own_port;
  if (const int error = socket_.open(); error != 0) return error;
  if (const int error = socket_.join(kGroup); error != 0) return error;
  if (const int error = loop_.add(socket_.fd(), EPOLLIN, handler_); error != 0) return -error;
  thread_ = std::thread([this] { loop_.run(); });
  return 0;
}

void Watcher::Handler::on_event(std::uint32_t) { watcher_.read(); }

void Watcher::read() {
  bool first;
  {
    const std::lock_guard lock(mutex_);
    first = changes_.tables.empty() && !changes_.overrun;
    std::span<const std::uint8_t> datagram;
    for (int i = 0; i < kTurn; ++i) {
      const int error = socket_.receive(datagram, MSG_DONTWAIT);
      if (error == -EAGAIN) break;
      if (error != 0 || !read_changes(datagram, own_port_, changes_)) changes_.overrun = true;
      // A socket that is good for nothing more would wake the loop for ever.
      if (error != 0 && error != -ENOBUFS && error != -EMSGSIZE) {
        loop_.remove(socket_.fd());
        break;
      }
    }
    first = first && (!changes_.tables.empty() || changes_.overrun);
  }
  if (first) notify_();
}

Changes Watcher::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(changes_, {});
}

void Watcher::stop() noexcept {
  if (!thread_.joinable()) return;
  loop_.post([this] { loop_.stop(); });
  thread_.join();
}

}  // namespace holdfast::nft
