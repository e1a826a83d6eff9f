#include <cstdlib>

#include "proxy_header.h"

namespace {

using namespace holdfast::proxy;
using State = ParsedHeader::State;

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

/// A complete header is the same whatever follows, every part of it is incomplete and not malformed, and its addresses survive being written
/// and read.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::uint8_t> bytes(data, size);
  const ParsedHeader header = parse_proxy_header(bytes);
  if (header.state != State::complete) return 0;
  require(header.size <= size && header.size <= kMostProxyHeader);
  const ParsedHeader exact = parse_proxy_header(bytes.first(header.size));
  require(exact.state == State::complete && exact.size == header.size && exact.addresses == header.addresses);
  for (std::size_t shorter = 0; shorter < header.size; ++shorter) require(parse_proxy_header(bytes.first(shorter)).state == State::incomplete);
  if (!header.addresses) return 0;
  for (const ProxyHeader version : {ProxyHeader::v1, ProxyHeader::v2}) {
    std::array<std::uint8_t, kMostWrittenHeader> out;
    const std::size_t written = write_proxy_header(version, *header.addresses, out);
    require(written <= out.size());
    const ParsedHeader again = parse_proxy_header(std::span(out).first(written));
    require(again.state == State::complete && again.size == written && again.addresses == header.addresses);
  }
  return 0;
}
