#include "tcp_challenge.h"

#include <arpa/inet.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/tcp.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace holdfast::net {
namespace {

constexpr std::size_t kTogether = 128;
/// The distance that packets of a host may go (IPDEFTTL of netinet/ip.h).
constexpr std::uint8_t kHops = 64;

std::uint32_t sum(std::span<const std::uint8_t> bytes, std::uint32_t start) noexcept {
  for (std::size_t i = 0; i + 1 < bytes.size(); i += 2) start += static_cast<std::uint32_t>(bytes[i] << 8 | bytes[i + 1]);
  return start;
}

/// RFC 9293 section 3.1: over the addresses, the protocol, the length and the segment.
std::uint16_t checksum(const SocketAddress& from, const SocketAddress& to, std::span<const std::uint8_t> segment) noexcept {
  const std::size_t length = from.family == Family::ipv4 ? 4 : 16;
  std::uint32_t total = sum(std::span(from.bytes).first(length), IPPROTO_TCP + static_cast<std::uint32_t>(segment.size()));
  total = sum(segment, sum(std::span(to.bytes).first(length), total));
  while (total > 0xffff) total = (total & 0xffff) + (total >> 16);
  return static_cast<std::uint16_t>(~total);
}

std::size_t write_ip(const SocketAddress& from, const SocketAddress& to, std::uint8_t* packet) noexcept {
  if (from.family == Family::ipv4) {
    // The kernel fills in the length's place, the number and the checksum (raw(7)).
    iphdr ip{};
    ip.version = 4;
    ip.ihl = sizeof ip / 4;
    ip.ttl = kHops;
    ip.protocol = IPPROTO_TCP;
    ip.tot_len = htons(sizeof ip + sizeof(tcphdr));
    std::memcpy(&ip.saddr, from.bytes.data(), 4);
    std::memcpy(&ip.daddr, to.bytes.data(), 4);
    std::memcpy(packet, &ip, sizeof ip);
    return sizeof ip;
  }
  ip6_hdr ip{};
  ip.ip6_flow = htonl(6U << 28);
  ip.ip6_plen = htons(sizeof(tcphdr));
  ip.ip6_nxt = IPPROTO_TCP;
  ip.ip6_hlim = kHops;
  std::memcpy(&ip.ip6_src, from.bytes.data(), 16);
  std::memcpy(&ip.ip6_dst, to.bytes.data(), 16);
  std::memcpy(packet, &ip, sizeof ip);
  return sizeof ip;
}

/// One raw socket for each family, opened when it is needed, and what waits to be sent by it.
class Sender {
 public:
  Sender(Family family, std::uint32_t mark, Challenged& result) : family_(family), mark_(mark), result_(result) {}

  void add(const SocketAddress& from, const SocketAddress& to) {
    Segment& segment = segments_[count_++];
    std::array<std::uint32_t, 2> numbers{};
    // Without entropy, at the start of a machine: numbers that are not random are wrong as well.
    if (::getrandom(numbers.data(), sizeof numbers, GRND_NONBLOCK) < 0) numbers = {1, 1};
    segment.size = write_segment(from, to, numbers[0], numbers[1], segment.bytes);
    segment.to = to;
    // A raw socket of IPv6 takes no port.
    segment.to.port = 0;
    if (count_ == segments_.size()) flush();
  }

  void flush() {
    const std::size_t count = std::exchange(count_, 0);
    if (count == 0) return;
    if (const int error = open(); error != 0) return fail(error, "open a raw socket", count);
    std::vector<RawAddress> addresses;
    for (std::size_t i = 0; i < count; ++i) addresses.emplace_back(segments_[i].to);
    std::array<iovec, kTogether> parts{};
    std::array<mmsghdr, kTogether> messages{};
    for (std::size_t i = 0; i < count; ++i) {
      parts[i] = {segments_[i].bytes.data(), segments_[i].size};
      messages[i].msg_hdr.msg_name = const_cast<sockaddr*>(addresses[i].data());
      messages[i].msg_hdr.msg_namelen = addresses[i].size();
      messages[i].msg_hdr.msg_iov = &parts[i];
      messages[i].msg_hdr.msg_iovlen = 1;
    }
    send(std::span(messages).first(count));
  }

 private:
  struct Segment {
    SocketAddress to;
    std::size_t size = 0;
    std::array<std::uint8_t, kMostSegmentBytes> bytes{};
  };

  int open() {
    if (fd_) return 0;
    UniqueFd fd(::socket(family_ == Family::ipv4 ? AF_INET : AF_INET6, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW));
    if (!fd) return -errno;
    if (::setsockopt(fd.get(), SOL_SOCKET, SO_MARK, &mark_, sizeof mark_) != 0) return -errno;
    fd_ = std::move(fd);
    return 0;
  }

  void send(std::span<mmsghdr> messages) {
    while (!messages.empty()) {
      const int sent = ::sendmmsg(fd_.get(), messages.data(), static_cast<unsigned>(messages.size()), 0);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0) fail(-errno, "send a segment", 1);
      else result_.sent += static_cast<std::uint32_t>(sent);
      messages = messages.subspan(sent < 0 ? 1 : static_cast<std::size_t>(sent));
    }
  }

  void fail(int error, const char* text, std::size_t count) {
    result_.failed += static_cast<std::uint32_t>(count);
    if (result_.error == 0) result_.error = error, result_.text = text;
  }

  const Family family_;
  const std::uint32_t mark_;
  Challenged& result_;
  UniqueFd fd_;
  std::array<Segment, kTogether> segments_;
  std::size_t count_ = 0;
};

}  // namespace

std::size_t write_segment(const SocketAddress& from, const SocketAddress& to, std::uint32_t sequence, std::uint32_t acknowledgement,
                          std::array<std::uint8_t, kMostSegmentBytes>& packet) noexcept {
  const std::size_t ip = write_ip(from, to, packet.data());
  tcphdr tcp{};
  tcp.source = htons(from.port);
  tcp.dest = htons(to.port);
  tcp.seq = htonl(sequence);
  tcp.ack_seq = htonl(acknowledgement);
  tcp.doff = sizeof tcp / 4;
  tcp.ack = 1;
  std::memcpy(packet.data() + ip, &tcp, sizeof tcp);
  tcp.check = htons(checksum(from, to, std::span<const std::uint8_t>(packet).subspan(ip, sizeof tcp)));
  std::memcpy(packet.data() + ip, &tcp, sizeof tcp);
  return ip + sizeof tcp;
}

Challenged challenge(const std::vector<conntrack::Entry>& entries, std::uint32_t mark) {
  Challenged result;
  Sender v4(Family::ipv4, mark, result), v6(Family::ipv6, mark, result);
  for (const conntrack::Entry& entry : entries) {
    if (entry.protocol != IPPROTO_TCP) continue;
    Sender& sender = entry.original.source.family == Family::ipv4 ? v4 : v6;
    sender.add(entry.original.destination, entry.original.source);
    sender.add(entry.reply.destination, entry.reply.source);
  }
  v4.flush();
  v6.flush();
  return result;
}

}  // namespace holdfast::net
