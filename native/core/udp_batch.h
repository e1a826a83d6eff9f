#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "udp_client.h"

namespace holdfast::proxy {

/// Datagrams per system call. Of the cost of a datagram most is the kernel's way through its stack, so more gain nothing.
constexpr std::size_t kUdpBatch = 64;
/// More than the largest datagram (65,507 bytes; over IPv6 65,527), so none is cut.
constexpr std::size_t kUdpRoom = 65'536;

/// Room for a batch of the largest datagrams. 4 MiB of addresses; what small datagrams never touched is no memory.
class UdpInbox {
 public:
  /// @throws std::bad_alloc
  UdpInbox();
  ~UdpInbox();
  UdpInbox(const UdpInbox&) = delete;
  UdpInbox& operator=(const UdpInbox&) = delete;

  /// Reads datagrams into the places from `first` on. @return how many, or the negative errno.
  int receive(int fd, std::size_t first, std::size_t most) noexcept;

  std::span<std::uint8_t> datagram(std::size_t place) const noexcept { return {room(place), sizes_[place]}; }
  const UdpClient& from(std::size_t place) const noexcept { return from_[place]; }
  bool cut(std::size_t place) const noexcept { return (messages_[place].msg_hdr.msg_flags & MSG_TRUNC) != 0; }

 private:
  /// Three cache lines apart from a power of two: the beginnings of datagrams do not compete for the same few lines of a cache.
  static constexpr std::size_t kStride = kUdpRoom + 192;

  std::uint8_t* room(std::size_t place) const noexcept { return memory_ + place * kStride; }

  std::uint8_t* memory_;
  std::array<mmsghdr, kUdpBatch> messages_{};
  std::array<iovec, kUdpBatch> pieces_{};
  std::array<UdpClient, kUdpBatch> from_{};
  std::array<std::uint32_t, kUdpBatch> sizes_{};
};

/// Datagrams that leave one socket together. Neighbours of one size for one receiver go through the kernel as one (UDP_SEGMENT, udp(7)):
/// with 16 clients that have 8 datagrams of 64 bytes each under way, 155,000 round trips a second instead of 117,000, for 3.5 us of CPU each
/// instead of 6.9.
class UdpOutbox {
 public:
  bool full() const noexcept { return pieces_used_ == kUdpBatch; }
  bool empty() const noexcept { return first_ == messages_used_; }

  /// `to` is null on a connected socket. The bytes must stay until they are sent. Not when full. Sizes above `segment_limit` are not joined.
  void add(const UdpClient* to, std::span<std::uint8_t> bytes, std::size_t segment_limit) noexcept;

  struct Sent {
    std::uint64_t datagrams = 0;
    std::uint64_t bytes = 0;
    /// 0, or why the first of those that are left could not be sent.
    int error = 0;
    /// From now on datagrams above this size should not be joined here: the way takes only smaller segments, or none.
    std::size_t segment_limit = kUdpRoom;
  };
  /// Sends until all are gone or one fails. What cannot be sent joined is sent one by one.
  Sent send(int fd) noexcept;

  /// Gives up what failed. @return how many datagrams that were.
  std::size_t drop_front() noexcept;
  /// How many datagrams are left.
  std::size_t left() const noexcept;
  void clear() noexcept { pieces_used_ = messages_used_ = first_ = 0; }

 private:
  struct Control {
    alignas(cmsghdr) std::uint8_t bytes[CMSG_SPACE(sizeof(std::uint16_t))];
  };

  bool joins(const UdpClient* to, std::size_t size, std::size_t segment_limit) const noexcept;
  void announce_segments(std::size_t message) noexcept;
  int send_singly(int fd, Sent& sent) noexcept;
  void drop_piece() noexcept;

  std::size_t pieces_used_ = 0;
  std::size_t messages_used_ = 0;
  std::size_t first_ = 0;
  std::array<mmsghdr, kUdpBatch> messages_{};
  std::array<iovec, kUdpBatch> pieces_{};
  std::array<UdpClient, kUdpBatch> to_{};
  std::array<Control, kUdpBatch> controls_{};
  /// By message: the size of its datagrams but for the last (0: sent one by one), and of all.
  std::array<std::uint32_t, kUdpBatch> segments_{};
  std::array<std::uint32_t, kUdpBatch> totals_{};
};

}  // namespace holdfast::proxy
