#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "socket_address.h"
#include "unique_fd.h"

namespace holdfast::testing {

using net::SocketAddress;
using net::UniqueFd;

/// What one blocking client or server sees of its peer.
enum class End { eof, reset, silence };

inline std::uint16_t port_of(int fd) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &size);
  return SocketAddress::from(storage).port;
}

inline UniqueFd listen_on_loopback() {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const net::RawAddress any(SocketAddress::loopback(0));
  if (::bind(fd.get(), any.data(), any.size()) != 0 || ::listen(fd.get(), 512) != 0) return {};
  return fd;
}

/// A port on which nothing listens.
inline std::uint16_t dead_port() { return port_of(listen_on_loopback().get()); }

inline UniqueFd connect_to(std::uint16_t port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const net::RawAddress to(SocketAddress::loopback(port));
  if (::connect(fd.get(), to.data(), to.size()) != 0) return {};
  return fd;
}

inline bool send_all(int fd, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t sent = ::send(fd, text.data() + done, text.size() - done, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    done += static_cast<std::size_t>(sent);
  }
  return true;
}

/// Reads `count` bytes, fewer at the stream's end.
inline std::string receive(int fd, std::size_t count) {
  std::string text(count, '\0');
  std::size_t done = 0;
  while (done < count) {
    const ssize_t got = ::recv(fd, text.data() + done, count - done, 0);
    if (got <= 0) break;
    done += static_cast<std::size_t>(got);
  }
  text.resize(done);
  return text;
}

/// Reads to the end; `silence` when nothing comes for `patience_ms`.
inline End read_to_end(int fd, std::string& text, int patience_ms = 10'000) {
  char buffer[65536];
  for (;;) {
    pollfd poll{fd, POLLIN, 0};
    if (::poll(&poll, 1, patience_ms) <= 0) return End::silence;
    const ssize_t got = ::recv(fd, buffer, sizeof buffer, 0);
    if (got == 0) return End::eof;
    if (got < 0) return End::reset;
    text.append(buffer, static_cast<std::size_t>(got));
  }
}

inline End end_of(int fd, int patience_ms = 10'000) {
  std::string ignored;
  return read_to_end(fd, ignored, patience_ms);
}

inline void reset_connection(UniqueFd fd) {
  const linger now{1, 0};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

/// A server whose every connection is `serve`d by a thread of its own. Waits for all of them when it goes.
class Server {
 public:
  explicit Server(std::function<void(UniqueFd)> serve) : listener_(listen_on_loopback()), port_(port_of(listener_.get())) {
    acceptor_ = std::thread([this, serve = std::move(serve)] {
      for (;;) {
        UniqueFd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        if (!client && errno == EINVAL) return;  // shut down
        if (!client) {
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
          continue;
        }
        ++accepted_;
        threads_.emplace_back([serve, client = std::move(client)]() mutable { serve(std::move(client)); });
      }
    });
  }
  ~Server() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    acceptor_.join();
    for (std::thread& thread : threads_) thread.join();
  }

  std::uint16_t port() const { return port_; }
  int accepted() const { return accepted_; }

 private:
  UniqueFd listener_;
  const std::uint16_t port_;
  std::atomic<int> accepted_{0};
  std::vector<std::thread> threads_;
  std::thread acceptor_;
};

/// Sends back what it gets until the stream's end.
inline void echo(UniqueFd client) {
  char buffer[65536];
  ssize_t got;
  while ((got = ::recv(client.get(), buffer, sizeof buffer, 0)) > 0) {
    if (!send_all(client.get(), std::string(buffer, static_cast<std::size_t>(got)))) return;
  }
}

}  // namespace holdfast::testing
