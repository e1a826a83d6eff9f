#include "proxy_header.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace holdfast::proxy {
namespace {

using State = ParsedHeader::State;
using namespace std::string_literals;

const std::string kSignature = "\r\n\r\n\0\r\nQUIT\n"s;
/// 1.2.3.4:258 to 5.6.7.8:443.
const std::string kBody4 = "\1\2\3\4\5\6\7\10\1\2\1\273"s;
const ProxyAddresses kAddresses4{{net::Family::ipv4, 258, {1, 2, 3, 4}}, {net::Family::ipv4, 443, {5, 6, 7, 8}}};
const ProxyAddresses kAddresses6{{net::Family::ipv6, 65535, {0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}},
                                 {net::Family::ipv6, 1, {0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2}}};

std::string version2(char command, char protocol, const std::string& body) {
  return kSignature + command + protocol + static_cast<char>(body.size() >> 8) + static_cast<char>(body.size()) + body;
}

ParsedHeader parse(const std::string& text) {
  // On the heap and of this very size, so that a sanitizer sees a read behind it.
  const std::vector<std::uint8_t> bytes(text.begin(), text.end());
  return parse_proxy_header(bytes);
}

struct Good {
  const char* name;
  std::string text;
  std::optional<ProxyAddresses> addresses;
};

TEST(ProxyHeader, ReadsWhatIsWellFormed) {
  const std::vector<Good> cases = {
      {"TCP4", "PROXY TCP4 1.2.3.4 5.6.7.8 258 443\r\n", kAddresses4},
      {"TCP6", "PROXY TCP6 fd00::1 fd00::2 65535 1\r\n", kAddresses6},
      {"UNKNOWN", "PROXY UNKNOWN\r\n", std::nullopt},
      {"UNKNOWN with something", "PROXY UNKNOWN ffff::1 x 99999 \r\n", std::nullopt},
      {"v2 TCP4", version2('\x21', '\x11', kBody4), kAddresses4},
      {"v2 TCP4 with TLVs", version2('\x21', '\x11', kBody4 + "\4\0\3abc"s + std::string(3000, 'x')), kAddresses4},
      {"v2 TCP6", version2('\x21', '\x21', std::string(kAddresses6.source.bytes.begin(), kAddresses6.source.bytes.end()) +
                                              std::string(kAddresses6.destination.bytes.begin(), kAddresses6.destination.bytes.end()) +
                                              "\xff\xff\0\1"s), kAddresses6},
      {"v2 LOCAL", version2('\x20', '\0', ""), std::nullopt},
      {"v2 LOCAL whose addresses are ignored", version2('\x20', '\x11', kBody4), std::nullopt},
      {"v2 unspecified", version2('\x21', '\0', "any"), std::nullopt},
      {"v2 datagrams", version2('\x21', '\x12', kBody4), std::nullopt},
      {"v2 unix", version2('\x21', '\x31', std::string(216, '/')), std::nullopt},
  };
  for (const Good& good : cases) {
    const ParsedHeader header = parse(good.text + "behind it");
    EXPECT_EQ(header.state, State::complete) << good.name;
    EXPECT_EQ(header.size, good.text.size()) << good.name;
    EXPECT_EQ(header.addresses, good.addresses) << good.name;
    for (std::size_t size = 0; size < good.text.size(); ++size) {
      EXPECT_EQ(parse(good.text.substr(0, size)).state, State::incomplete) << good.name << " " << size;
    }
  }
}

TEST(ProxyHeader, RefusesWhatIsNot) {
  const std::vector<std::string> cases = {
      "GET / HTTP/1.1\r\n", "\r\n\r\n\1", "PROXY\t", "PROXY \r\n", "PROXY TCP5 1.2.3.4 5.6.7.8 1 2\r\n", "PROXY  TCP4 1.2.3.4 5.6.7.8 1 2\r\n",
      "PROXY TCP4 1.2.3.4 5.6.7.8 1 2\n", "PROXY TCP4 1.2.3.4 5.6.7.8 1 2 \r\n", "PROXY TCP4 1.2.3.4 5.6.7.8 1 2 3\r\n",
      "PROXY TCP4 1.2.3.4 5.6.7.8 1\r\n", "PROXY TCP4 1.2.3.4 5.6.7.8 01 2\r\n", "PROXY TCP4 1.2.3.4 5.6.7.8 1 65536\r\n",
      "PROXY TCP4 1.2.3.4 5.6.7.8 -1 2\r\n", "PROXY TCP4 1.2.3.4 5.6.7.8 +1 2\r\n", "PROXY TCP4 1.2.3 5.6.7.8 1 2\r\n",
      "PROXY TCP4 fd00::1 fd00::2 1 2\r\n", "PROXY TCP6 1.2.3.4 5.6.7.8 1 2\r\n", "PROXY TCP4 1.2.3.4\0x 5.6.7.8 1 2\r\n"s,
      "PROXY TCP4 1.2.3.4  5.6.7.8 1 2\r\n", "PROXY UNKNOWNS\r\n", "PROXY UNKNOWN " + std::string(200, 'x'), version2('\x11', '\x11', kBody4),
      version2('\x22', '\x11', kBody4), version2('\x21', '\x41', kBody4), version2('\x21', '\x13', kBody4),
      version2('\x21', '\x11', kBody4.substr(1)), version2('\x21', '\x21', kBody4), version2('\x21', '\x11', std::string(4081, 'x')),
  };
  for (const std::string& text : cases) EXPECT_EQ(parse(text).state, State::malformed) << text;
}

TEST(ProxyHeader, ReadsWhatItWrites) {
  for (const ProxyHeader version : {ProxyHeader::v1, ProxyHeader::v2}) {
    for (const ProxyAddresses& addresses : {kAddresses4, kAddresses6}) {
      std::array<std::uint8_t, kMostWrittenHeader> out;
      const std::size_t size = write_proxy_header(version, addresses, out);
      const ParsedHeader header = parse_proxy_header(std::span(out).first(size));
      EXPECT_EQ(header.state, State::complete);
      EXPECT_EQ(header.size, size);
      EXPECT_EQ(header.addresses, addresses);
    }
    std::array<std::uint8_t, kMostWrittenHeader> out;
    const ProxyAddresses mixed{kAddresses4.source, kAddresses6.destination};
    const std::size_t size = write_proxy_header(version, mixed, out);
    EXPECT_EQ(parse_proxy_header(std::span(out).first(size)).addresses, std::nullopt);
    EXPECT_EQ(parse_proxy_header(std::span(out).first(size)).state, State::complete);
  }
}

TEST(ProxyHeader, TheLongestLineFits) {
  ProxyAddresses longest = kAddresses6;
  longest.source.bytes.fill(0xff);
  longest.destination.bytes.fill(0xff);
  longest.destination.port = 65535;
  std::array<std::uint8_t, kMostWrittenHeader> out;
  const std::size_t size = write_proxy_header(ProxyHeader::v1, longest, out);
  EXPECT_EQ(size, 104U);
  EXPECT_EQ(parse_proxy_header(std::span(out).first(size)).addresses, longest);
}

}  // namespace
}  // namespace holdfast::proxy
