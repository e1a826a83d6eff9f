#include "udp_batch.h"

#include <netinet/udp.h>
#include <sys/mman.h>

#include <cerrno>
#include <new>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103  // linux/udp.h, since 4.18
#endif

namespace holdfast::proxy {
namespace {

/// What the kernel takes as one: an IPv4 datagram's worth of bytes.
constexpr std::size_t kMostJoined = 65'507;

/// A segment that the way's MTU does not take, or a device that takes none.
bool cannot_join(int error) noexcept { return error == EINVAL || error == EMSGSIZE || error == EIO; }

}  // namespace

UdpInbox::UdpInbox() {
  void* memory = ::mmap(nullptr, kUdpBatch * kStride, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  // Huge pages would make 4 MiB of it real at the first datagram.
  ::madvise(memory, kUdpBatch * kStride, MADV_NOHUGEPAGE);
  memory_ = static_cast<std::uint8_t*>(memory);
  for (std::size_t i = 0; i < kUdpBatch; ++i) {
    pieces_[i] = {room(i), kUdpRoom};
    messages_[i].msg_hdr.msg_iov = &pieces_[i];
    messages_[i].msg_hdr.msg_iovlen = 1;
    messages_[i].msg_hdr.msg_name = from_[i].room();
  }
}

UdpInbox::~UdpInbox() { ::munmap(memory_, kUdpBatch * kStride); }

int UdpInbox::receive(int fd, std::size_t first, std::size_t most) noexcept {
  for (std::size_t i = first; i < first + most; ++i) messages_[i].msg_hdr.msg_namelen = UdpClient::kRoom;
  int count;
  do {
    count = ::recvmmsg(fd, &messages_[first], static_cast<unsigned>(most), MSG_DONTWAIT, nullptr);
  } while (count < 0 && errno == EINTR);
  if (count < 0) return -errno;
  for (std::size_t i = first; i < first + static_cast<std::size_t>(count); ++i) sizes_[i] = messages_[i].msg_len;
  return count;
}

/// A message ends with the first datagram that is shorter than the others: so the receiver's kernel cuts it.
bool UdpOutbox::joins(const UdpClient* to, std::size_t size, std::size_t segment_limit) const noexcept {
  if (empty()) return false;
  const std::size_t last = messages_used_ - 1;
  const msghdr& header = messages_[last].msg_hdr;
  const std::size_t segment = segments_[last];
  if (size == 0 || size > segment || segment > segment_limit) return false;
  if (totals_[last] != segment * header.msg_iovlen || totals_[last] + size > kMostJoined) return false;
  return to == nullptr || *to == to_[last];
}

void UdpOutbox::add(const UdpClient* to, std::span<std::uint8_t> bytes, std::size_t segment_limit) noexcept {
  pieces_[pieces_used_] = {bytes.data(), bytes.size()};
  const auto size = static_cast<std::uint32_t>(bytes.size());
  if (joins(to, size, segment_limit)) {
    totals_[messages_used_ - 1] += size;
    ++messages_[messages_used_ - 1].msg_hdr.msg_iovlen;
  } else {
    msghdr& header = messages_[messages_used_].msg_hdr;
    header = {};
    header.msg_iov = &pieces_[pieces_used_];
    header.msg_iovlen = 1;
    if (to != nullptr) {
      to_[messages_used_] = *to;
      header.msg_name = to_[messages_used_].room();
      header.msg_namelen = to->size();
    }
    segments_[messages_used_] = totals_[messages_used_] = size;
    ++messages_used_;
  }
  ++pieces_used_;
}

void UdpOutbox::announce_segments(std::size_t message) noexcept {
  msghdr& header = messages_[message].msg_hdr;
  header.msg_control = nullptr;
  header.msg_controllen = 0;
  if (header.msg_iovlen < 2) return;
  header.msg_control = controls_[message].bytes;
  header.msg_controllen = sizeof controls_[message].bytes;
  cmsghdr* control = CMSG_FIRSTHDR(&header);
  control->cmsg_level = SOL_UDP;
  control->cmsg_type = UDP_SEGMENT;
  control->cmsg_len = CMSG_LEN(sizeof(std::uint16_t));
  const auto segment = static_cast<std::uint16_t>(segments_[message]);
  std::memcpy(CMSG_DATA(control), &segment, sizeof segment);
}

UdpOutbox::Sent UdpOutbox::send(int fd) noexcept {
  Sent sent;
  for (std::size_t i = first_; i < messages_used_; ++i) announce_segments(i);
  while (!empty()) {
    const bool singly = segments_[first_] == 0 && messages_[first_].msg_hdr.msg_iovlen > 1;
    if (singly && (sent.error = send_singly(fd, sent)) != 0) return sent;
    if (singly) continue;
    const auto count = static_cast<unsigned>(messages_used_ - first_);
    // The one-message call is the cheaper one.
    const int done = count == 1 ? (::sendmsg(fd, &messages_[first_].msg_hdr, MSG_NOSIGNAL) < 0 ? -1 : 1)
                                : ::sendmmsg(fd, &messages_[first_], count, MSG_NOSIGNAL);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0 && cannot_join(errno) && messages_[first_].msg_hdr.msg_iovlen > 1) {
      sent.segment_limit = errno == EIO ? 0 : segments_[first_] - 1;
      segments_[first_] = 0;
      continue;
    }
    if (done < 0) return sent.error = errno, sent;
    for (int i = 0; i < done; ++i, ++first_) {
      sent.datagrams += messages_[first_].msg_hdr.msg_iovlen;
      sent.bytes += totals_[first_];
    }
  }
  clear();
  return sent;
}

/// 0 or an errno: then the message has what is left.
int UdpOutbox::send_singly(int fd, Sent& sent) noexcept {
  msghdr& header = messages_[first_].msg_hdr;
  while (header.msg_iovlen > 0) {
    msghdr one = header;
    one.msg_iovlen = 1;
    one.msg_control = nullptr;
    one.msg_controllen = 0;
    const ssize_t done = ::sendmsg(fd, &one, MSG_NOSIGNAL);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return errno;
    ++sent.datagrams;
    sent.bytes += header.msg_iov->iov_len;
    drop_piece();
  }
  ++first_;
  return 0;
}

void UdpOutbox::drop_piece() noexcept {
  msghdr& header = messages_[first_].msg_hdr;
  totals_[first_] -= static_cast<std::uint32_t>(header.msg_iov->iov_len);
  ++header.msg_iov;
  --header.msg_iovlen;
}

std::size_t UdpOutbox::drop_front() noexcept {
  const std::size_t datagrams = messages_[first_].msg_hdr.msg_iovlen;
  if (segments_[first_] == 0 && datagrams > 1) return drop_piece(), 1;
  ++first_;
  return datagrams;
}

std::size_t UdpOutbox::left() const noexcept {
  std::size_t datagrams = 0;
  for (std::size_t i = first_; i < messages_used_; ++i) datagrams += messages_[i].msg_hdr.msg_iovlen;
  return datagrams;
}

}  // namespace holdfast::proxy
