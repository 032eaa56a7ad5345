#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace offload::protocol {

/// A protocol that a peer speaks by mistake where frames are expected.
enum class OtherProtocol : std::uint8_t { none, http, tls };

/// Returns the protocol that begins with `bytes`; none if there are too few to tell. No valid frame
/// begins like that: its length would exceed 300 MB.
OtherProtocol recognise(std::span<const std::byte> bytes) noexcept;

/// The response to an HTTP request at a port of frames.
inline constexpr std::string_view kHttpRefusal =
    "HTTP/1.1 400 Bad Request\r\n"
    "Content-Type: text/plain\r\n"
    "Connection: close\r\n"
    "\r\n"
    "This port speaks the protocol of dpu-gpu-offload (docs/reference/wire-protocol.md), not "
    "HTTP.\n"
    "Use offload-client here. /metrics and /status are at the address of --metrics.\n";

}  // namespace offload::protocol
