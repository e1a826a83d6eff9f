#pragma once

#include "nft_plan.h"

namespace holdfast::nft {

/// Appends the expression as one list element. Returns what is wrong with it: its name, the number or the kind of its values; else "".
std::string put_expression(netlink::Writer& writer, const Expression& expression);

/// The verdict `code` (linux/netfilter/nf_tables.h), with the chain of a jump or goto.
void put_verdict(netlink::Writer& writer, std::uint32_t code, const std::string& chain);

}  // namespace holdfast::nft
