#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

/// The messages of the control channel between server and worker (docs/wire-protocol.md). Each
/// travels in a frame; these structs are the payloads. decode() returns nothing for a payload that
/// is too short, too long or out of range.
namespace offload::protocol {

inline constexpr std::uint32_t kControlMagic = 0x4f46'4c44;  // "OFLD"
inline constexpr std::uint16_t kControlVersion = 1;

/// No control message is longer: a longer one is refused unread.
inline constexpr std::uint32_t kMaxControlLength = 1024;

/// A peer that says nothing for that many keep-alive intervals is gone, on either side.
inline constexpr int kSilentIntervals = 5;

/// Random numbers that are never used twice, codes over them, and what a session is known by.
using Nonce = std::array<std::byte, 32>;
using Mac = std::array<std::byte, 32>;
using Token = std::array<std::byte, 16>;

/// Bits of Hello::capabilities.
enum Capability : std::uint32_t {
  /// The worker rings the server's doorbell when the server sleeps. One that cannot (a GPU) is
  /// polled for.
  kRingsDoorbell = 1U << 0,
};

/// worker → server, first thing.
struct Hello {
  std::uint16_t version = kControlVersion;
  std::uint32_t capabilities = 0;
  std::uint32_t max_channels = 0;        ///< how many channels the worker can serve
  std::uint32_t max_message_length = 0;  ///< the longest request it can process, bytes
  std::string backend;                   ///< "cpu", "cuda NVIDIA H100 ...": for the log

  [[nodiscard]] std::vector<std::byte> encode() const;
  static std::optional<Hello> decode(std::span<const std::byte> payload);
};

/// server → worker, in answer to an acceptable Hello.
struct Welcome {
  std::uint16_t version = kControlVersion;
  std::uint16_t channel_count = 0;
  std::uint32_t keep_alive_ms = 0;  ///< each side sends one so often
  std::string service;              ///< what to do with each request

  [[nodiscard]] std::vector<std::byte> encode() const;
  static std::optional<Welcome> decode(std::span<const std::byte> payload);
};

/// server → worker, one a channel. Over shared memory three file descriptors travel with it: the
/// channel's memory, the worker's doorbell and the server's.
struct ChannelDescriptor {
  std::uint32_t channel = 0;
  std::uint32_t depth = 0;               ///< slots, a power of two
  std::uint32_t max_message_length = 0;  ///< bytes
  /// What gives access to it: over shared memory its memory, as memory::export_region says it; over
  /// a network the session's Token.
  std::vector<std::byte> access;

  [[nodiscard]] std::vector<std::byte> encode() const;
  static std::optional<ChannelDescriptor> decode(std::span<const std::byte> payload);
};

/// Either way: the consumer of `channel` has posted its receives and is known as `consumer_id`.
struct ExchangeConsumerId {
  std::uint32_t channel = 0;
  std::uint32_t consumer_id = 0;

  [[nodiscard]] std::vector<std::byte> encode() const;
  static std::optional<ExchangeConsumerId> decode(std::span<const std::byte> payload);
};

/// Either way, every Welcome::keep_alive_ms.
struct KeepAlive {
  std::uint64_t sequence = 0;

  [[nodiscard]] std::vector<std::byte> encode() const;
  static std::optional<KeepAlive> decode(std::span<const std::byte> payload);
};

/// server → whoever connected over a network, first thing: prove that you have the key.
struct Challenge {
  Nonce nonce{};

  [[nodiscard]] std::vector<std::byte> encode() const;
  static std::optional<Challenge> decode(std::span<const std::byte> payload);
};

/// The answer, and the server's own after it (comch/key.hpp).
struct Proof {
  Nonce nonce{};  ///< of whoever proves
  Mac mac{};

  [[nodiscard]] std::vector<std::byte> encode() const;
  static std::optional<Proof> decode(std::span<const std::byte> payload);
};

/// worker → server, on a connection of its own. The server's channel_attached has its endpoint for
/// payload. Over TCP both endpoints are empty, and what follows is data (protocol/data.hpp). Over
/// RDMA they describe the queue pairs that carry it, and the connection ends.
struct AttachChannel {
  std::uint32_t channel = 0;
  Token token{};  ///< of the session, as the channel's descriptor had it
  std::vector<std::byte> endpoint{};

  [[nodiscard]] std::vector<std::byte> encode() const;
  static std::optional<AttachChannel> decode(std::span<const std::byte> payload);
};

}  // namespace offload::protocol
