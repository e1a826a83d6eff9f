#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common.h"

namespace rig {

/// Rates are taken after this: connections, caches and the peer's pools are warm then.
inline constexpr std::uint64_t kWarmUpNs = 300'000'000;

struct Options {
  std::string mode;
  sockaddr_in target{};
  std::size_t connections = 1;
  double seconds = 1;
  /// Client addresses, used in turn: one address has 64,000 ports only.
  std::vector<in_addr> sources;
  /// UDP: datagrams on the way per socket.
  std::size_t window = 8;
};

/// A non-blocking or blocking TCP socket that connects; -1 with errno when it cannot.
class Dialer {
 public:
  explicit Dialer(const Options& options) : options_(options) {}
  int dial(int flags);

 private:
  const Options& options_;
  std::size_t next_ = 0;
};

/// Counts, and how long each operation took.
class Results {
 public:
  Results();
  /// `warm`: whether it counts for the rate. All of them cost the proxy CPU.
  void succeeded(std::uint64_t ns, bool warm = true);
  void failed(std::uint64_t count = 1) { errors_ += count; }
  /// One line of JSON; microseconds.
  void print(double seconds);

 private:
  double percentile(double share);

  std::vector<std::uint32_t> latencies_;
  std::uint64_t operations_ = 0;
  std::uint64_t errors_ = 0;
};

/// Each prints its results and returns the exit code.
int run_short(const Options& options);
int run_ping(const Options& options);
int run_idle(const Options& options);
int run_udp(const Options& options);
/// One echo over TCP or UDP, then 0; 1 when there is no answer within a second.
int run_probe(const Options& options, int type);

}  // namespace rig
