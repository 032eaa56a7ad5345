#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "net/peer_address.hpp"

namespace offload::net {

/// The longest header that is taken, bytes: what a proxy adds to the addresses has room.
inline constexpr std::size_t kMaxProxyHeader = 4096;

/// The header with which a proxy begins a connection, to name its client: the PROXY protocol,
/// version 2 (HAProxy, doc/proxy-protocol.txt, 2.2).
struct ProxyHeader {
  enum class State : std::uint8_t { incomplete, complete, invalid };

  State state = State::incomplete;
  std::size_t size = 0;               ///< of a complete one, bytes
  std::optional<PeerAddress> client;  ///< none: the proxy speaks for itself, as to check a server
};

/// Returns the header that `bytes` begin with.
ProxyHeader parse_proxy_header(std::span<const std::byte> bytes) noexcept;

/// Returns whether `bytes`, four at least, begin as such a header does. No frame does: its length
/// would exceed 200 MB.
bool looks_like_proxy_header(std::span<const std::byte> bytes) noexcept;

}  // namespace offload::net
