#include "conntrack_filter.h"

#include <algorithm>
#include <string_view>

namespace holdfast::conntrack {

std::size_t Matcher::Hash::operator()(const Key& key) const noexcept {
  const std::string_view bytes(reinterpret_cast<const char*>(key.address.bytes.data()), key.address.bytes.size());
  return std::hash<std::string_view>{}(bytes) ^ static_cast<std::size_t>(key.part);
}

Matcher::Matcher(const Filter& filter) : filter_(filter) {
  for (const Selector& selector : filter.any_of) {
    Key key{selector.part, selector.address};
    key.address.port = 0;
    selectors_[key].push_back({selector.protocol, selector.address.port});
  }
}

bool Matcher::selects(Part part, const net::SocketAddress& address, std::uint8_t protocol) const {
  Key key{part, address};
  key.address.port = 0;
  const auto found = selectors_.find(key);
  if (found == selectors_.end()) return false;
  return std::any_of(found->second.begin(), found->second.end(), [&](const Rest& rest) {
    return (rest.protocol == 0 || rest.protocol == protocol) && (rest.port == 0 || rest.port == address.port);
  });
}

bool Matcher::operator()(const Entry& entry) const {
  if (filter_.family && entry.original.source.family != *filter_.family) return false;
  if (filter_.protocol != 0 && entry.protocol != filter_.protocol) return false;
  if ((entry.mark & filter_.mark_mask) != (filter_.mark & filter_.mark_mask)) return false;
  if (filter_.zone && entry.zone != *filter_.zone) return false;
  return selectors_.empty() || selects(Part::source, entry.original.source, entry.protocol) ||
         selects(Part::destination, entry.original.destination, entry.protocol) || selects(Part::backend, entry.reply.source, entry.protocol);
}

}  // namespace holdfast::conntrack
