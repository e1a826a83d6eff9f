#pragma once

#include <sys/socket.h>
#include <sys/time.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "loopback.h"

namespace holdfast::testing {

inline UniqueFd udp_socket() {
  UniqueFd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const net::RawAddress any(SocketAddress::loopback(0));
  if (::bind(fd.get(), any.data(), any.size()) != 0) return {};
  return fd;
}

/// A port to which nothing is bound.
inline std::uint16_t dead_udp_port() { return port_of(udp_socket().get()); }

/// One client socket, connected to a listener.
class UdpPeer {
 public:
  explicit UdpPeer(std::uint16_t port) : fd_(udp_socket()) {
    const net::RawAddress to(SocketAddress::loopback(port));
    ::connect(fd_.get(), to.data(), to.size());
  }

  int fd() const { return fd_.get(); }
  std::uint16_t port() const { return port_of(fd_.get()); }
  bool send(const std::string& text) const { return ::send(fd_.get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()); }
  /// 0 or the errno that the socket reports, waiting for it up to `patience_ms`.
  int error(int patience_ms = 2'000) const {
    pollfd poll{fd_.get(), POLLIN, 0};
    ::poll(&poll, 1, patience_ms);
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    return error;
  }
  /// Nothing when none comes.
  std::optional<std::string> receive(int patience_ms = 5'000) const {
    pollfd poll{fd_.get(), POLLIN, 0};
    if (::poll(&poll, 1, patience_ms) <= 0) return std::nullopt;
    std::string text(65'536, '\0');
    const ssize_t got = ::recv(fd_.get(), text.data(), text.size(), 0);
    if (got < 0) return std::nullopt;
    text.resize(static_cast<std::size_t>(got));
    return text;
  }
  std::optional<std::string> ask(const std::string& text, int patience_ms = 5'000) const {
    return send(text) ? receive(patience_ms) : std::nullopt;
  }

 private:
  UniqueFd fd_;
};

/// Answers each datagram with what `replies` says, in one thread.
class UdpServer {
 public:
  using Replies = std::function<std::vector<std::string>(const std::string&)>;

  explicit UdpServer(Replies replies = [](const std::string& text) { return std::vector<std::string>{text}; })
      : fd_(udp_socket()), port_(port_of(fd_.get())), replies_(std::move(replies)) {
    const int buffer = 4 << 20;
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
    const timeval tick{0, 20'000};
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &tick, sizeof tick);
    thread_ = std::thread([this] { run(); });
  }
  ~UdpServer() { stop(); }

  /// From now on its port is closed.
  void stop() {
    stopping_ = true;
    if (thread_.joinable()) thread_.join();
    fd_.reset();
  }

  std::uint16_t port() const { return port_; }
  int received() const { return received_; }
  /// How many sockets have sent to it.
  std::size_t sources() {
    const std::lock_guard lock(mutex_);
    return sources_.size();
  }
  /// Sends to whom it heard last, unasked.
  void push(const std::string& text) {
    const std::lock_guard lock(mutex_);
    ::sendto(fd_.get(), text.data(), text.size(), 0, reinterpret_cast<sockaddr*>(&last_), sizeof(sockaddr_in));
  }

 private:
  void run() {
    std::string text(65'536, '\0');
    while (!stopping_) {
      sockaddr_storage from{};
      socklen_t size = sizeof from;
      const ssize_t got = ::recvfrom(fd_.get(), text.data(), text.size(), 0, reinterpret_cast<sockaddr*>(&from), &size);
      if (got < 0) continue;
      {
        const std::lock_guard lock(mutex_);
        sources_.insert(SocketAddress::from(from));
        last_ = from;
      }
      ++received_;
      for (const std::string& reply : replies_(text.substr(0, static_cast<std::size_t>(got)))) {
        ::sendto(fd_.get(), reply.data(), reply.size(), 0, reinterpret_cast<sockaddr*>(&from), size);
      }
    }
  }

  UniqueFd fd_;
  const std::uint16_t port_;
  const Replies replies_;
  std::atomic<bool> stopping_{false};
  std::atomic<int> received_{0};
  std::mutex mutex_;
  std::set<SocketAddress> sources_;
  sockaddr_storage last_{};
  std::thread thread_;
};

/// Says its name.
inline UdpServer::Replies named(const std::string& name) {
  return [name](const std::string&) { return std::vector<std::string>{name}; };
}
inline UdpServer::Replies silent() {
  return [](const std::string&) { return std::vector<std::string>{}; };
}

}  // namespace holdfast::testing
