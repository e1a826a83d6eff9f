// short and ping: TCP connections in one epoll loop.
#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>

#include "load.h"

namespace rig {
namespace {

/// An operation without an answer for this long failed, and its connection is opened again.
constexpr std::uint64_t kPatienceNs = 1'000'000'000;
/// Connects that fail at once in a row: the target is gone, not busy.
constexpr int kMostRefusals = 1'000;

struct Connection {
  int fd = -1;
  bool connected = false;
  std::size_t received = 0;
  std::uint64_t since = 0;
};

class StreamLoad {
 public:
  StreamLoad(const Options& options, bool keep) : dialer_(options), keep_(keep), connections_(options.connections) {
    warm_ = now_ns() + kWarmUpNs;
    end_ = warm_ + std::uint64_t(options.seconds * 1e9);
  }

  int run() {
    for (std::size_t i = 0; i < connections_.size(); ++i) open(i);
    std::array<epoll_event, 512> events;
    std::uint64_t next_scan = now_ns() + kPatienceNs / 10;
    for (std::uint64_t now = now_ns(); now < end_; now = now_ns()) {
      const int count = ::epoll_wait(epoll_, events.data(), int(events.size()), 20);
      for (int i = 0; i < count; ++i) on_event(events[std::size_t(i)]);
      if (now < next_scan) continue;
      next_scan = now + kPatienceNs / 10;
      for (std::size_t i = 0; i < connections_.size(); ++i) {
        if (now > connections_[i].since + kPatienceNs) fail_and_reopen(i);
      }
    }
    results_.print(double(now_ns() - warm_) / 1e9);
    return 0;
  }

 private:
  void open(std::size_t index) {
    Connection& connection = connections_[index];
    connection = {.fd = -1, .connected = false, .received = 0, .since = now_ns()};
    for (int refusals = 0; connection.fd < 0; ++refusals) {
      connection.fd = dialer_.dial(SOCK_NONBLOCK);
      if (connection.fd >= 0) break;
      results_.failed();
      if (refusals == kMostRefusals) fail("connect");
      ::usleep(1'000);
    }
    wait_for(index, EPOLL_CTL_ADD, EPOLLOUT);
  }

  void wait_for(std::size_t index, int operation, std::uint32_t events) {
    epoll_event event{};
    event.events = events;
    event.data.u64 = index;
    if (::epoll_ctl(epoll_, operation, connections_[index].fd, &event) != 0) fail("epoll_ctl");
  }

  void fail_and_reopen(std::size_t index) {
    results_.failed();
    ::close(connections_[index].fd);
    open(index);
  }

  void on_event(const epoll_event& event) {
    const std::size_t index = event.data.u64;
    if (connections_[index].connected) {
      on_readable(index);
    } else {
      on_connected(index, event.events);
    }
  }

  void on_connected(std::size_t index, std::uint32_t events) {
    Connection& connection = connections_[index];
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(connection.fd, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0 || (events & EPOLLERR) != 0) return fail_and_reopen(index);
    connection.connected = true;
    // A ping begins with its first byte; a short connection began with its SYN.
    if (keep_) connection.since = now_ns();
    if (!send(connection)) return fail_and_reopen(index);
    wait_for(index, EPOLL_CTL_MOD, EPOLLIN);
  }

  void on_readable(std::size_t index) {
    Connection& connection = connections_[index];
    std::array<char, 4096> buffer;
    const ssize_t size = ::recv(connection.fd, buffer.data(), buffer.size(), 0);
    if (size < 0 && errno == EAGAIN) return;
    if (size <= 0) return fail_and_reopen(index);
    connection.received += std::size_t(size);
    if (connection.received < kMessageSize) return;
    const std::uint64_t now = now_ns();
    results_.succeeded(now - connection.since, now >= warm_);
    if (!keep_) {
      ::close(connection.fd);
      return open(index);
    }
    connection.received = 0;
    connection.since = now;
    if (!send(connection)) fail_and_reopen(index);
  }

  bool send(const Connection& connection) {
    return ::send(connection.fd, message_.data(), message_.size(), MSG_NOSIGNAL) == ssize_t(message_.size());
  }

  Dialer dialer_;
  bool keep_;
  std::vector<Connection> connections_;
  std::string message_ = std::string(kMessageSize, 'x');
  int epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
  Results results_;
  std::uint64_t warm_ = 0;
  std::uint64_t end_ = 0;
};

}  // namespace

int run_short(const Options& options) { return StreamLoad(options, false).run(); }
int run_ping(const Options& options) { return StreamLoad(options, true).run(); }

}  // namespace rig
