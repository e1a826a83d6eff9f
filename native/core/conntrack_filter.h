#pragma once

#include <unordered_map>

#include "conntrack_entry.h"

namespace holdfast::conntrack {

/// A filter made ready: what one entry costs does not grow with the number of selectors.
class Matcher {
 public:
  explicit Matcher(const Filter& filter);
  bool operator()(const Entry& entry) const;

 private:
  /// A part and an address without its port.
  struct Key {
    Part part;
    net::SocketAddress address;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const noexcept;
  };
  struct Rest {
    std::uint8_t protocol;
    std::uint16_t port;
  };

  bool selects(Part part, const net::SocketAddress& address, std::uint8_t protocol) const;

  Filter filter_;
  std::unordered_map<Key, std::vector<Rest>, Hash> selectors_;
};

}  // namespace holdfast::conntrack
