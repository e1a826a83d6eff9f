// load MODE IP:PORT CONNECTIONS SECONDS [SOURCE,SOURCE...] [WINDOW]: the client. Prints one line of JSON. One thread.
//   short  connect, 64 bytes, their echo, close; CONNECTIONS at a time
//   ping   64 bytes to and fro on CONNECTIONS open connections
//   idle   opens CONNECTIONS, an echo on each, then holds them until standard input ends
//   udp    CONNECTIONS sockets with WINDOW datagrams of 64 bytes on the way each
//   probe, probe-udp  one echo
#include "load.h"

#include <netinet/tcp.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>

namespace rig {

int Dialer::dial(int flags) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
  if (fd < 0) return -1;
  enable(fd, IPPROTO_TCP, TCP_NODELAY);
  if (!options_.sources.empty()) {
    sockaddr_in source{};
    source.sin_family = AF_INET;
    source.sin_addr = options_.sources[next_++ % options_.sources.size()];
    // The port is chosen at connect, where only the pair of addresses has to be free.
    enable(fd, SOL_IP, IP_BIND_ADDRESS_NO_PORT);
    if (::bind(fd, reinterpret_cast<const sockaddr*>(&source), sizeof source) != 0) fail("bind");
  }
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&options_.target), sizeof options_.target) == 0) return fd;
  if (errno == EINPROGRESS) return fd;
  const int error = errno;
  ::close(fd);
  errno = error;
  return -1;
}

Results::Results() { latencies_.reserve(1 << 20); }

void Results::succeeded(std::uint64_t ns, bool warm) {
  ++operations_;
  if (warm) latencies_.push_back(std::uint32_t(std::min<std::uint64_t>(ns, UINT32_MAX)));
}

double Results::percentile(double share) {
  if (latencies_.empty()) return 0;
  const std::size_t rank = std::min(latencies_.size() - 1, std::size_t(share * double(latencies_.size())));
  const auto at = latencies_.begin() + std::ptrdiff_t(rank);
  std::nth_element(latencies_.begin(), at, latencies_.end());
  return *at / 1000.0;
}

void Results::print(double seconds) {
  using Number = unsigned long long;
  std::printf("{\"operations\":%llu,\"errors\":%llu,\"seconds\":%.3f,\"rate\":%.1f,\"p50\":%.1f,\"p99\":%.1f}\n", Number(operations_),
              Number(errors_), seconds, double(latencies_.size()) / seconds, percentile(.5), percentile(.99));
  std::fflush(stdout);
}

int run_probe(const Options& options, int type) {
  const int fd = ::socket(AF_INET, type | SOCK_CLOEXEC, 0);
  const timeval second{1, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof second);
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &second, sizeof second);
  char byte = 'x';
  const bool answered = ::connect(fd, reinterpret_cast<const sockaddr*>(&options.target), sizeof options.target) == 0 &&
                        ::send(fd, &byte, 1, MSG_NOSIGNAL) == 1 && ::recv(fd, &byte, 1, 0) == 1;
  ::close(fd);
  return answered ? 0 : 1;
}

int run_idle(const Options& options) {
  Dialer dialer(options);
  Results results;
  std::array<char, kMessageSize> message{};
  const std::uint64_t began = now_ns();
  for (std::size_t i = 0; i < options.connections; ++i) {
    const std::uint64_t start = now_ns();
    const int fd = dialer.dial(0);
    const timeval patience{5, 0};
    if (fd >= 0) ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    const bool echoed = fd >= 0 && ::send(fd, message.data(), message.size(), MSG_NOSIGNAL) == ssize_t(message.size()) &&
                        ::recv(fd, message.data(), message.size(), MSG_WAITALL) == ssize_t(message.size());
    if (echoed) {
      results.succeeded(now_ns() - start);
    } else {
      results.failed();
    }
  }
  results.print(double(now_ns() - began) / 1e9);
  char ignored = 0;
  while (::read(STDIN_FILENO, &ignored, 1) > 0) {
  }
  return 0;
}

namespace {

int run(const Options& options) {
  if (options.mode == "short") return run_short(options);
  if (options.mode == "ping") return run_ping(options);
  if (options.mode == "idle") return run_idle(options);
  if (options.mode == "udp") return run_udp(options);
  if (options.mode == "probe") return run_probe(options, SOCK_STREAM);
  if (options.mode == "probe-udp") return run_probe(options, SOCK_DGRAM);
  std::fprintf(stderr, "unknown mode %s\n", options.mode.c_str());
  return 2;
}

}  // namespace
}  // namespace rig

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  rig::raise_file_limit();
  std::signal(SIGPIPE, SIG_IGN);
  rig::Options options{.mode = argv[1],
                       .target = rig::parse_address(argv[2]),
                       .connections = std::size_t(std::max(1, std::atoi(argv[3]))),
                       .seconds = std::atof(argv[4]),
                       .sources = {},
                       .window = argc > 6 ? std::size_t(std::max(1, std::atoi(argv[6]))) : 8};
  for (const std::string& text : rig::split(argc > 5 ? argv[5] : "", ',')) {
    options.sources.push_back(rig::parse_address(text + ":0").sin_addr);
  }
  return rig::run(options);
}
