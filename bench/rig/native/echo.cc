// echo IP:PORT[,IP:PORT...] [THREADS]: the back end. Sends back whatever TCP and UDP bring, until it is killed.
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <thread>
#include <unordered_set>

#include "common.h"

namespace rig {
namespace {

int bound_socket(int type, const sockaddr_in& address) {
  const int fd = ::socket(AF_INET, type | SOCK_CLOEXEC, 0);
  if (fd < 0) fail("socket");
  enable(fd, SOL_SOCKET, SO_REUSEADDR);
  enable(fd, SOL_SOCKET, SO_REUSEPORT);
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) fail("bind");
  return fd;
}

void watch(int epoll, int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  if (::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) fail("epoll_ctl");
}

void accept_all(int epoll, int listener) {
  for (;;) {
    const int fd = ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) return;
    enable(fd, IPPROTO_TCP, TCP_NODELAY);
    watch(epoll, fd);
  }
}

void echo_once(int fd) {
  std::array<char, 64 * 1024> buffer;
  const ssize_t size = ::recv(fd, buffer.data(), buffer.size(), 0);
  if (size < 0 && errno == EAGAIN) return;
  // Cases send less than a send buffer holds, so a short send is a connection that is gone.
  if (size <= 0 || ::send(fd, buffer.data(), std::size_t(size), MSG_NOSIGNAL) != size) ::close(fd);
}

void serve_tcp(const std::vector<sockaddr_in>& addresses) {
  const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
  std::unordered_set<int> listeners;
  for (const sockaddr_in& address : addresses) {
    const int fd = bound_socket(SOCK_STREAM | SOCK_NONBLOCK, address);
    if (::listen(fd, 16384) != 0) fail("listen");
    listeners.insert(fd);
    watch(epoll, fd);
  }
  std::array<epoll_event, 512> events;
  for (;;) {
    const int count = ::epoll_wait(epoll, events.data(), int(events.size()), -1);
    for (int i = 0; i < count; ++i) {
      const int fd = events[std::size_t(i)].data.fd;
      if (listeners.contains(fd)) {
        accept_all(epoll, fd);
      } else {
        echo_once(fd);
      }
    }
  }
}

void serve_udp(const sockaddr_in& address) {
  constexpr unsigned kBatch = 64;
  const int fd = bound_socket(SOCK_DGRAM, address);
  widen_buffers(fd);
  static thread_local std::array<std::array<char, 2048>, kBatch> buffers;
  std::array<mmsghdr, kBatch> messages{};
  std::array<iovec, kBatch> vectors{};
  std::array<sockaddr_in, kBatch> peers{};
  for (;;) {
    for (unsigned i = 0; i < kBatch; ++i) {
      vectors[i] = {buffers[i].data(), buffers[i].size()};
      messages[i].msg_hdr = {&peers[i], sizeof peers[i], &vectors[i], 1, nullptr, 0, 0};
    }
    const int received = ::recvmmsg(fd, messages.data(), kBatch, MSG_WAITFORONE, nullptr);
    for (int i = 0; i < received; ++i) vectors[std::size_t(i)].iov_len = messages[std::size_t(i)].msg_len;
    for (int sent = 0; sent < received;) {
      const int count = ::sendmmsg(fd, messages.data() + sent, unsigned(received - sent), 0);
      // One that cannot be sent is one that the network lost.
      sent += count > 0 ? count : 1;
    }
  }
}

}  // namespace
}  // namespace rig

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  rig::raise_file_limit();
  std::signal(SIGPIPE, SIG_IGN);
  std::vector<sockaddr_in> addresses;
  for (const std::string& text : rig::split(argv[1], ',')) addresses.push_back(rig::parse_address(text));
  std::vector<std::jthread> threads;
  const int count = argc > 2 ? std::atoi(argv[2]) : 1;
  for (int i = 0; i < count; ++i) threads.emplace_back(rig::serve_tcp, addresses);
  for (const sockaddr_in& address : addresses) threads.emplace_back(rig::serve_udp, address);
}
