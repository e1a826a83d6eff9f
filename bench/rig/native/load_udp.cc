// udp: each socket keeps a window of datagrams on the way, every answer makes room for the next.
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "load.h"

namespace rig {
namespace {

constexpr std::size_t kBatch = 64;
/// What a silent socket has on the way after this is lost.
constexpr std::uint64_t kLostAfterNs = 100'000'000;

struct Flow {
  int fd = -1;
  std::size_t outstanding = 0;
  std::uint64_t last_sent = 0;
};

class UdpLoad {
 public:
  explicit UdpLoad(const Options& options) : options_(options), flows_(options.connections) {
    for (unsigned i = 0; i < kBatch; ++i) {
      incoming_vectors_[i] = {incoming_[i].data(), incoming_[i].size()};
      outgoing_vectors_[i] = {outgoing_[i].data(), outgoing_[i].size()};
      received_[i].msg_hdr.msg_iov = &incoming_vectors_[i];
      received_[i].msg_hdr.msg_iovlen = 1;
      sent_[i].msg_hdr.msg_iov = &outgoing_vectors_[i];
      sent_[i].msg_hdr.msg_iovlen = 1;
    }
  }

  int run() {
    for (std::size_t i = 0; i < flows_.size(); ++i) open(i);
    warm_ = now_ns() + kWarmUpNs;
    const std::uint64_t end = warm_ + std::uint64_t(options_.seconds * 1e9);
    std::array<epoll_event, 512> events;
    std::uint64_t next_scan = now_ns() + kLostAfterNs / 2;
    for (std::uint64_t now = now_ns(); now < end; now = now_ns()) {
      const int count = ::epoll_wait(epoll_, events.data(), int(events.size()), 20);
      for (int i = 0; i < count; ++i) receive(flows_[events[std::size_t(i)].data.u64]);
      if (now < next_scan) continue;
      next_scan = now + kLostAfterNs / 2;
      for (Flow& flow : flows_) give_up_lost(flow, now);
    }
    results_.print(double(now_ns() - warm_) / 1e9);
    return 0;
  }

 private:
  void open(std::size_t index) {
    Flow& flow = flows_[index];
    flow.fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    widen_buffers(flow.fd);
    if (::connect(flow.fd, reinterpret_cast<const sockaddr*>(&options_.target), sizeof options_.target) != 0) fail("connect");
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = index;
    if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, flow.fd, &event) != 0) fail("epoll_ctl");
    fill(flow);
  }

  void fill(Flow& flow) {
    const std::size_t room = std::min(kBatch, options_.window - std::min(options_.window, flow.outstanding));
    flow.last_sent = now_ns();
    for (std::size_t i = 0; i < room; ++i) std::memcpy(outgoing_[i].data(), &flow.last_sent, sizeof flow.last_sent);
    const int count = room == 0 ? 0 : ::sendmmsg(flow.fd, sent_.data(), unsigned(room), 0);
    if (count < 0) results_.failed();
    flow.outstanding += std::size_t(std::max(0, count));
  }

  void receive(Flow& flow) {
    const int count = ::recvmmsg(flow.fd, received_.data(), kBatch, MSG_DONTWAIT, nullptr);
    if (count <= 0) return;
    const std::uint64_t now = now_ns();
    for (int i = 0; i < count; ++i) {
      std::uint64_t sent_at = 0;
      std::memcpy(&sent_at, incoming_[std::size_t(i)].data(), sizeof sent_at);
      results_.succeeded(now - sent_at, now >= warm_);
    }
    // Answers that come after they were given up as lost are more than what is outstanding.
    flow.outstanding -= std::min(flow.outstanding, std::size_t(count));
    fill(flow);
  }

  void give_up_lost(Flow& flow, std::uint64_t now) {
    if (now < flow.last_sent + kLostAfterNs) return;
    if (now >= warm_) results_.failed(flow.outstanding);
    flow.outstanding = 0;
    fill(flow);
  }

  const Options& options_;
  std::vector<Flow> flows_;
  std::array<std::array<char, 256>, kBatch> incoming_{};
  std::array<std::array<char, kMessageSize>, kBatch> outgoing_{};
  std::array<iovec, kBatch> incoming_vectors_{};
  std::array<iovec, kBatch> outgoing_vectors_{};
  std::array<mmsghdr, kBatch> received_{};
  std::array<mmsghdr, kBatch> sent_{};
  int epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
  Results results_;
  std::uint64_t warm_ = UINT64_MAX;
};

}  // namespace

int run_udp(const Options& options) { return UdpLoad(options).run(); }

}  // namespace rig
