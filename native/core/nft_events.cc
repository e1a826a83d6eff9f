#include "nft_events.h"

#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>

#include <algorithm>

#include "netlink_message.h"

namespace holdfast::nft {
namespace {

using netlink::find_attribute;

/// Every kind of object names its table in attribute 1 (NFTA_TABLE_NAME, NFTA_CHAIN_TABLE …).
constexpr std::uint16_t kTable = NFTA_TABLE_NAME;
/// An event of a table's element says no more than the one before: the text is compared where it lies.
std::string_view text_of(const netlink::Attribute& attribute) noexcept {
  const std::string_view text(reinterpret_cast<const char*>(attribute.value.data()), attribute.value.size());
  return text.substr(0, text.find('\0'));
}

void note(std::uint8_t family, std::string_view table, std::uint32_t port, Changes& changes) {
  const auto same = [&](const Change& one) { return one.family == family && one.port == port && one.table == table; };
  if (std::any_of(changes.tables.rbegin(), changes.tables.rend(), same)) return;
  if (changes.tables.size() == kMostChanges) changes.overrun = true;
  else changes.tables.push_back({family, std::string(table), port, 0, ""});
}

/// The end of a batch says whose it was.
void name(std::span<const std::uint8_t> attributes, std::uint32_t port, Changes& changes) {
  const auto process = find_attribute(attributes, NFTA_GEN_PROC_PID);
  const auto command = find_attribute(attributes, NFTA_GEN_PROC_NAME);
  for (Change& change : changes.tables) {
    if (change.port != port || change.process != 0) continue;
    if (process) change.process = process->u32();
    if (command) change.command = command->text();
  }
}

}  // namespace

bool read_changes(std::span<const std::uint8_t> datagram, std::uint32_t own_port, Changes& changes) {
  while (const auto message = netlink::next_message(datagram)) {
    const std::uint32_t port = message->header.nlmsg_pid;
    nfgenmsg header;
    if (message->header.nlmsg_type >> 8 != NFNL_SUBSYS_NFTABLES || message->body.size() < sizeof header || port == own_port) continue;
    std::memcpy(&header, message->body.data(), sizeof header);
    const auto attributes = message->body.subspan(sizeof header);
    if ((message->header.nlmsg_type & 0xff) == NFT_MSG_NEWGEN) name(attributes, port, changes);
    else if (const auto table = find_attribute(attributes, kTable)) note(header.nfgen_family, text_of(*table), port, changes);
  }
  return datagram.empty();
}

}  // namespace holdfast::nft
