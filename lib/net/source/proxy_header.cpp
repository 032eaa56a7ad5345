#include "net/source/proxy_header.hpp"

#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace offload::net {
namespace {

constexpr std::array<std::uint8_t, 12> kSignature{0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d,
                                                  0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a};
/// The signature, the version and the command, the family, and the length of the rest.
constexpr std::size_t kFixedSize = kSignature.size() + 4;

// The byte of the version, 2, and the command.
constexpr std::byte kLocal{0x20};
constexpr std::byte kProxy{0x21};
// The byte of the address family and the transport.
constexpr std::byte kUnspecified{0x00};
constexpr std::byte kTcpOverIpv4{0x11};
constexpr std::byte kTcpOverIpv6{0x21};
constexpr std::byte kUnixStream{0x31};

bool begins_with_signature(std::span<const std::byte> bytes) noexcept {
  const std::size_t size = std::min(bytes.size(), kSignature.size());
  return size == 0 || std::memcmp(bytes.data(), kSignature.data(), size) == 0;
}

/// The addresses of a block: the source's, the destination's, and their ports. Nothing if the block
/// is too short.
template <class Socket, class Ip>
std::optional<PeerAddress> source_in(std::span<const std::byte> block, int family, Ip Socket::*ip,
                                     in_port_t Socket::*port) noexcept {
  if (block.size() < 2 * sizeof(Ip) + 2 * sizeof(in_port_t)) return std::nullopt;
  sockaddr_storage storage{};
  auto& address = reinterpret_cast<Socket&>(storage);
  storage.ss_family = static_cast<sa_family_t>(family);
  std::memcpy(&(address.*ip), block.data(), sizeof(Ip));
  std::memcpy(&(address.*port), block.data() + 2 * sizeof(Ip), sizeof(in_port_t));
  return PeerAddress(storage);
}

}  // namespace

ProxyHeader parse_proxy_header(std::span<const std::byte> bytes) noexcept {
  using enum ProxyHeader::State;
  if (!begins_with_signature(bytes)) return {invalid, 0, {}};
  if (bytes.size() < kFixedSize) return {};
  const std::byte command = bytes[kSignature.size()];
  const std::byte family = bytes[kSignature.size() + 1];
  const std::size_t length = std::to_integer<std::size_t>(bytes[kSignature.size() + 2]) << 8 |
                             std::to_integer<std::size_t>(bytes[kSignature.size() + 3]);
  const std::size_t size = kFixedSize + length;
  if ((command != kLocal && command != kProxy) || size > kMaxProxyHeader) return {invalid, 0, {}};
  if (bytes.size() < size) return {};
  if (command == kLocal) return {complete, size, {}};
  const auto block = bytes.subspan(kFixedSize, length);
  std::optional<PeerAddress> client;
  switch (family) {
    case kUnspecified:
    case kUnixStream: return {complete, size, {}};
    case kTcpOverIpv4:
      client = source_in(block, AF_INET, &sockaddr_in::sin_addr, &sockaddr_in::sin_port);
      break;
    case kTcpOverIpv6:
      client = source_in(block, AF_INET6, &sockaddr_in6::sin6_addr, &sockaddr_in6::sin6_port);
      break;
    default: break;
  }
  return client ? ProxyHeader{complete, size, client} : ProxyHeader{invalid, 0, {}};
}

bool looks_like_proxy_header(std::span<const std::byte> bytes) noexcept {
  return bytes.size() >= 4 && begins_with_signature(bytes);
}

}  // namespace offload::net
