#include "table_codec.h"

#include <algorithm>
#include <set>
#include <unordered_set>

#include "byte_reader.h"

namespace holdfast::proxy {
namespace {

constexpr std::uint32_t kMagic = 0x44544648;  // "HFTD"
constexpr std::uint16_t kVersion = 2;
constexpr std::size_t kRemoveSize = 4;
constexpr std::size_t kUpsertSize = 52;
constexpr std::size_t kEndpointSize = 24;

class Reader : public ByteReader {
 public:
  using ByteReader::ByteReader;

  std::chrono::milliseconds ms() { return std::chrono::milliseconds(u32()); }
  /// One of 0 to `most`.
  std::uint8_t choice(const char* what, std::uint8_t most) {
    const std::uint8_t value = u8();
    if (value > most) fail(std::string("unknown ") + what + " " + std::to_string(value));
    return value;
  }
  void zero(std::size_t count) {
    for (const std::uint8_t byte : take(count)) {
      if (byte != 0) fail("reserved bytes are not zero");
    }
  }
};

net::Family read_family(Reader& in) {
  const std::uint8_t family = in.u8();
  if (family != 4 && family != 6) fail("unknown address family " + std::to_string(family));
  return static_cast<net::Family>(family);
}

void read_address(Reader& in, net::SocketAddress& address) {
  const auto bytes = in.take(16);
  std::copy(bytes.begin(), bytes.end(), address.bytes.begin());
  if (address.family != net::Family::ipv4) return;
  if (std::any_of(bytes.begin() + 4, bytes.end(), [](std::uint8_t byte) { return byte != 0; })) {
    fail("bytes after an IPv4 address are not zero");
  }
}

Endpoint read_endpoint(Reader& in) {
  Endpoint endpoint;
  endpoint.address.family = read_family(in);
  endpoint.weight = in.u8();
  endpoint.tier = in.choice("tier", 1);
  in.zero(1);
  endpoint.address.port = in.u16();
  in.zero(2);
  read_address(in, endpoint.address);
  if (endpoint.weight < 1 || endpoint.weight > 100) fail("weight is not 1 to 100");
  if (endpoint.address.port == 0) fail("endpoint port is 0");
  return endpoint;
}

ListenerConfig read_upsert(Reader& in) {
  ListenerConfig config;
  config.id = in.u32();
  config.address.family = read_family(in);
  config.protocol = static_cast<Protocol>(in.choice("protocol", 1));
  config.algorithm = static_cast<Algorithm>(in.choice("algorithm", 3));
  config.accept_proxy = in.choice("PROXY acceptance", 1) == 1;
  config.send_proxy = static_cast<ProxyHeader>(in.choice("PROXY version", 2));
  config.refuse = in.choice("refusal", 1) == 1;
  config.address.port = in.u16();
  config.drain = in.ms();
  config.connect_timeout = in.ms();
  config.affinity = in.ms();
  config.idle = in.ms();
  config.max_connections = in.u32();
  if (config.connect_timeout.count() == 0) fail("connect timeout is 0");
  const bool proxied = config.accept_proxy || config.send_proxy != ProxyHeader::none;
  if (config.protocol == Protocol::udp && proxied) fail("PROXY headers are for TCP");
  const std::size_t endpoints = in.u16();
  in.zero(2);
  read_address(in, config.address);
  in.count(endpoints, kEndpointSize);
  config.endpoints.reserve(endpoints);
  std::set<net::SocketAddress> seen;
  for (std::size_t i = 0; i < endpoints; ++i) {
    config.endpoints.push_back(read_endpoint(in));
    if (!seen.insert(config.endpoints.back().address).second) fail("an endpoint stands twice");
  }
  return config;
}

TableDelta read_delta(Reader& in) {
  if (in.u32() != kMagic) fail("not a table delta");
  if (const std::uint16_t version = in.u16(); version != kVersion) fail("unknown version " + std::to_string(version));
  in.zero(2);
  const std::size_t removes = in.u32();
  const std::size_t upserts = in.u32();
  in.count(removes, kRemoveSize);
  in.count(upserts, kUpsertSize);
  TableDelta delta;
  delta.remove.reserve(removes);
  delta.upsert.reserve(upserts);
  std::unordered_set<ListenerId> seen;
  for (std::size_t i = 0; i < removes; ++i) {
    delta.remove.push_back(in.u32());
    if (!seen.insert(delta.remove.back()).second) fail("a listener stands twice");
  }
  for (std::size_t i = 0; i < upserts; ++i) {
    delta.upsert.push_back(read_upsert(in));
    if (!seen.insert(delta.upsert.back().id).second) fail("a listener stands twice");
  }
  if (!in.empty()) fail("bytes after the end");
  return delta;
}

}  // namespace

std::variant<TableDelta, DecodeError> decode_table_delta(std::span<const std::uint8_t> bytes) {
  try {
    Reader in(bytes);
    return read_delta(in);
  } catch (Malformed& malformed) {
    return DecodeError{std::move(malformed.problem)};
  }
}

}  // namespace holdfast::proxy
