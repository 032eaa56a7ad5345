#include "net/source/proxy_header.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace offload::net {
namespace {

using State = ProxyHeader::State;

/// A header of that command and family with this block behind its length.
std::vector<std::byte> header(int command, int family, const std::string& block) {
  std::string text("\r\n\r\n\0\r\nQUIT\n", 12);
  text += static_cast<char>(command);
  text += static_cast<char>(family);
  text += static_cast<char>(block.size() >> 8);
  text += static_cast<char>(block.size() & 0xff);
  text += block;
  std::vector<std::byte> bytes;
  for (const char one : text) bytes.push_back(static_cast<std::byte>(one));
  return bytes;
}

/// From 192.0.2.1:4711 to 198.51.100.2:443.
const std::string kIpv4("\xc0\x00\x02\x01\xc6\x33\x64\x02\x12\x67\x01\xbb", 12);

/// From [2001:db8::1]:4711 to [2001:db8::2]:443.
std::string ipv6() {
  const std::string prefix("\x20\x01\x0d\xb8", 4);
  const std::string zeros(11, '\0');
  return prefix + zeros + "\1" + prefix + zeros + "\2" + std::string("\x12\x67\x01\xbb", 4);
}

std::string client_of(const ProxyHeader& header) {
  return header.client ? std::string(std::string_view(header.client->text())) : "none";
}

TEST(ProxyHeader, NamesAClientOfEachFamily) {
  const auto v4 = parse_proxy_header(header(0x21, 0x11, kIpv4));
  EXPECT_EQ(v4.state, State::complete);
  EXPECT_EQ(v4.size, 28U);
  EXPECT_EQ(client_of(v4), "192.0.2.1:4711");
  const auto v6 = parse_proxy_header(header(0x21, 0x21, ipv6()));
  EXPECT_EQ(v6.state, State::complete);
  EXPECT_EQ(v6.size, 52U);
  EXPECT_EQ(client_of(v6), "[2001:db8::1]:4711");
}

TEST(ProxyHeader, CountsWhatFollowsTheAddresses) {
  const auto parsed =
      parse_proxy_header(header(0x21, 0x11, kIpv4 + "\x03" + std::string(300, 'x')));
  EXPECT_EQ(parsed.state, State::complete);
  EXPECT_EQ(parsed.size, 16U + 12 + 301);
  EXPECT_EQ(client_of(parsed), "192.0.2.1:4711");
}

TEST(ProxyHeader, LeavesTheBytesBehindIt) {
  auto bytes = header(0x21, 0x11, kIpv4);
  bytes.resize(bytes.size() + 100);
  EXPECT_EQ(parse_proxy_header(bytes).size, 28U);
}

TEST(ProxyHeader, NamesNobodyWhereTheProxySpeaksForItself) {
  for (const auto& bytes : {header(0x20, 0x11, kIpv4), header(0x20, 0x00, ""),
                            header(0x21, 0x00, ""), header(0x21, 0x31, std::string(216, '/'))}) {
    const auto parsed = parse_proxy_header(bytes);
    EXPECT_EQ(parsed.state, State::complete);
    EXPECT_EQ(parsed.size, bytes.size());
    EXPECT_EQ(client_of(parsed), "none");
  }
}

TEST(ProxyHeader, IsIncompleteUntilItsLastByte) {
  const auto bytes = header(0x21, 0x11, kIpv4);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(parse_proxy_header(std::span(bytes).first(size)).state, State::incomplete) << size;
  }
}

TEST(ProxyHeader, IsInvalidAtTheFirstWrongByteOfItsSignature) {
  const auto right = header(0x21, 0x11, kIpv4);
  for (std::size_t at = 0; at < 12; ++at) {
    auto bytes = right;
    bytes[at] ^= std::byte{1};
    const auto parsed = parse_proxy_header(std::span(bytes).first(at + 1));
    EXPECT_EQ(parsed.state, State::invalid) << at;
    EXPECT_EQ(parsed.size, 0U);
  }
}

TEST(ProxyHeader, RefusesWhatTheProtocolDoesNotAllow) {
  for (const int command : {0x00, 0x11, 0x22, 0x2f, 0x31}) {
    const auto parsed = parse_proxy_header(header(command, 0x11, kIpv4));
    EXPECT_EQ(parsed.state, State::invalid) << command;
    EXPECT_EQ(parsed.size, 0U);
  }
  for (const int family : {0x10, 0x12, 0x22, 0x32, 0x41}) {
    const auto parsed = parse_proxy_header(header(0x21, family, ipv6()));
    EXPECT_EQ(parsed.state, State::invalid) << family;
    EXPECT_EQ(parsed.size, 0U);
  }
}

TEST(ProxyHeader, RefusesABlockTooShortForItsAddresses) {
  EXPECT_EQ(parse_proxy_header(header(0x21, 0x11, kIpv4.substr(1))).state, State::invalid);
  EXPECT_EQ(parse_proxy_header(header(0x21, 0x21, ipv6().substr(1))).state, State::invalid);
}

TEST(ProxyHeader, HasALimit) {
  const std::string most(kMaxProxyHeader - 16, '\0');
  EXPECT_EQ(parse_proxy_header(header(0x20, 0x00, most)).state, State::complete);
  const auto longer = header(0x20, 0x00, most + '\0');
  EXPECT_EQ(parse_proxy_header(std::span(longer).first(16)).state, State::invalid);
}

TEST(ProxyHeader, IsRecognizedByFourBytes) {
  const auto bytes = header(0x21, 0x11, kIpv4);
  EXPECT_TRUE(looks_like_proxy_header(bytes));
  EXPECT_TRUE(looks_like_proxy_header(std::span(bytes).first(4)));
  EXPECT_FALSE(looks_like_proxy_header(std::span(bytes).first(3)));
  EXPECT_FALSE(looks_like_proxy_header(std::span(bytes).subspan(1)));
}

}  // namespace
}  // namespace offload::net
