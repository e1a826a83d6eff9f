#pragma once

#include "nft_plan.h"

namespace holdfast::nft {

/// One datagram: a batch with its begin and end. Message i (0 is the one behind the begin) has the sequence number `first + 1 + i` and
/// belongs to `operations[i]`: elements of one operation are split into messages below 64 KiB.
struct Batch {
  Bytes bytes;
  std::vector<std::uint32_t> operations;
  /// What is wrong with the plan, else "". The operation is then the last of `operations`.
  std::string problem;
};

/// The last message of the plan asks for an acknowledgement: kernels before 6.10 acknowledge no batch's end.
/// With a generation the kernel takes the batch only as long as that is the ruleset's, else it says ERESTART.
Batch encode(const Plan& plan, std::uint32_t first, std::optional<std::uint32_t> generation = std::nullopt);

}  // namespace holdfast::nft
