#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// The messages of the control connection (docs/reference/wire-protocol.md). These structs are the
/// payloads of frames. decode() returns nothing for a payload that is too short or too long, or a
/// Hello with a wrong magic number; the receiver checks the values.
namespace offload::protocol {

inline constexpr std::uint32_t kControlMagic = 0x4f46'4c44;  // "OFLD"
inline constexpr std::uint16_t kControlVersion = 4;

/// The longest control message, bytes: a longer one is refused unread.
inline constexpr std::uint32_t kMaxControlLength = 1024;

/// The longest message of an application, in bytes, without `taken` and the length.
inline constexpr std::uint32_t kMaxUserMessage = kMaxControlLength - 6;

/// Services of a worker, and of a server: their names fit into a control message. encode() throws
/// Error (invalid_value) for more.
inline constexpr std::size_t kMaxServices = 16;
inline constexpr std::size_t kMaxServiceName = 32;

/// Returns whether it is a valid name of a service: 1 to kMaxServiceName of a-z, 0-9, - and _.
[[nodiscard]] bool is_service_name(std::string_view name) noexcept;

/// Either side takes a peer for dead that sends nothing for this many keep-alive intervals.
inline constexpr int kSilentIntervals = 5;

/// The random identifier of a session.
using Token = std::array<std::byte, 16>;

/// Bits of Hello::capabilities.
enum HelloCapability : std::uint32_t {
  /// The worker rings the server's doorbell when the server sleeps. The server polls for a worker
  /// that cannot, such as a GPU.
  kRingsDoorbell = 1U << 0,
  /// It serves no channel while another worker can: a hot stand-by.
  kStandsBy = 1U << 1,
  /// It takes the place of the worker that has been attached for the longest, which may then go.
  kReplaces = 1U << 2,
  /// Its back end posts its responses itself, as RDMA writes into the server's slots, and has
  /// requests written into its own. Over RDMA alone.
  kWritesSlots = 1U << 3,
};

/// worker → server: the first message. Decoded, its text is escaped (core/escape.hpp).
struct Hello {
  std::uint16_t version = kControlVersion;
  std::uint32_t capabilities = 0;
  std::uint32_t max_channels = 0;        ///< how many channels the worker can serve
  std::uint32_t max_message_length = 0;  ///< the longest request it can process, bytes
  std::string backend;                   ///< "cpu", "cuda NVIDIA H100 ...", for the log
  std::vector<std::string> services{};   ///< that it has

  [[nodiscard]] std::vector<std::byte> encode() const;
  static std::optional<Hello> decode(std::span<const std::byte> payload);
};

/// server → worker, in answer to an acceptable Hello. Decoded, its text is escaped.
struct Welcome {
  std::uint16_t version = kControlVersion;
  std::uint16_t channel_count = 0;
  std::uint32_t keep_alive_ms = 0;      ///< the interval of KeepAlive, on either side
  std::vector<std::string> services{};  ///< of the channels

  [[nodiscard]] std::vector<std::byte> encode() const;
  static std::optional<Welcome> decode(std::span<const std::byte> payload);
};

/// server → worker, one for each channel. Over shared memory four file descriptors are passed with
/// it: of the memory of requests and of responses, and of the ends of the two doorbells that are
/// the worker's: where it waits, and where it rings.
struct ChannelDescriptor {
  std::uint32_t channel = 0;
  std::uint32_t depth = 0;               ///< slots, a power of two
  std::uint32_t max_message_length = 0;  ///< of a request, bytes
  /// Access to the channel: over shared memory the blob of memory::export_region for the requests,
  /// over a network the session's Token.
  std::vector<std::byte> access;
  /// Over shared memory the blob for the responses, else empty.
  std::vector<std::byte> response_access;
  std::uint32_t max_response_length = 0;  ///< bytes; a response may also be as long as its request
  std::uint8_t service = 0;               ///< for its requests: one of Welcome::services

  [[nodiscard]] std::vector<std::byte> encode() const;
  static std::optional<ChannelDescriptor> decode(std::span<const std::byte> payload);
};

/// In both directions: the consumer of `channel` has posted its receives; its id is `consumer_id`.
struct ExchangeConsumerId {
  std::uint32_t channel = 0;
  std::uint32_t consumer_id = 0;

  [[nodiscard]] std::vector<std::byte> encode() const;
  static std::optional<ExchangeConsumerId> decode(std::span<const std::byte> payload);
};

/// server → worker: the number of channels whose requests it serves from now on.
struct Assignment {
  std::uint32_t channels = 0;

  [[nodiscard]] std::vector<std::byte> encode() const;
  static std::optional<Assignment> decode(std::span<const std::byte> payload);
};

/// Why a server tells a worker to stop. Stable numbers.
enum class ShutdownReason : std::uint8_t {
  server_leaves = 0,  ///< the server ends; the worker may wait for the next one
  together = 1,       ///< the server ends, and wants its workers to
  released = 2,       ///< the worker asked to go, or another takes its place
};

/// server → worker: it has got all the answers; the worker stops and says so (shutdown_complete).
/// The same message from worker to server has no payload and asks the server to end.
struct StartShutdown {
  ShutdownReason reason = ShutdownReason::server_leaves;

  [[nodiscard]] std::vector<std::byte> encode() const;
  static std::optional<StartShutdown> decode(std::span<const std::byte> payload);
};

/// In both directions, every Welcome::keep_alive_ms.
struct KeepAlive {
  std::uint64_t sequence = 0;

  [[nodiscard]] std::vector<std::byte> encode() const;
  static std::optional<KeepAlive> decode(std::span<const std::byte> payload);
};

/// In both directions, once the worker is attached: a message of the application. The receiver
/// answers with one without bytes, which says what it has taken.
struct UserMessage {
  std::uint32_t taken = 0;         ///< of the peer's messages with bytes, so far; it wraps around
  std::vector<std::byte> bytes{};  ///< up to kMaxUserMessage

  [[nodiscard]] std::vector<std::byte> encode() const;
  static std::optional<UserMessage> decode(std::span<const std::byte> payload);
};

/// worker → server, on a new connection for each channel. The server answers with channel_attached,
/// whose payload is its endpoint. Over TCP both endpoints are empty, and the connection then
/// carries the data (protocol/data.hpp). Over RDMA they describe the queue pairs that carry the
/// data, and the connection ends.
struct AttachChannel {
  std::uint32_t channel = 0;
  Token token{};  ///< of the session, from the ChannelDescriptor
  std::vector<std::byte> endpoint{};

  [[nodiscard]] std::vector<std::byte> encode() const;
  static std::optional<AttachChannel> decode(std::span<const std::byte> payload);
};

}  // namespace offload::protocol
