#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "listen_socket.h"
#include "udp_client.h"

namespace holdfast::dns {

/// Who waits for an answer that is made elsewhere.
struct Asker {
  std::shared_ptr<proxy::ListenSocket> socket;
  proxy::UdpClient client;
  /// What it takes by UDP.
  std::uint16_t limit = 0;
};

/// Those who wait: so many, and no more. From any thread; only what no table answers gets here.
class Waiting {
 public:
  static constexpr std::size_t kMost = 1'024;

  Waiting();

  /// The handle, which no other one ever gets (they stay below 2^53 for 280 years of 1,000,000 a second); nothing when all places are taken.
  std::optional<std::uint64_t> add(Asker asker);
  /// Once for each handle.
  std::optional<Asker> take(std::uint64_t handle);
  std::size_t size() const;

 private:
  struct Place {
    std::uint64_t turn = 0;
    std::optional<Asker> asker;
  };

  mutable std::mutex mutex_;
  std::vector<Place> places_;
  std::vector<std::uint32_t> free_;
};

}  // namespace holdfast::dns
