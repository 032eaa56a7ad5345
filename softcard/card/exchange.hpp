#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "softcard/card/request.hpp"

namespace offload::rdma::model {

/// The network between cards. It may lose datagrams, and change their order.
class Wire {
 public:
  Wire() = default;
  Wire& operator=(Wire&&) = delete;
  virtual ~Wire() = default;

  /// `address`: of IPv4.
  virtual void send(std::uint32_t address, std::span<const std::byte> datagram) = 0;
  /// Sends a frame of a queue pair for raw packets to other machines, if the wire carries frames.
  virtual void send_frame(std::span<const std::byte>) {}
};

/// Packet sequence numbers have 24 bits.
inline constexpr std::uint32_t kPsnMask = 0xff'ffffU;

/// The header of each datagram between cards of the same byte order. A request goes in parts, each
/// of which is answered.
struct DatagramHeader {
  static constexpr std::uint32_t kMagic = 0x5043'4f53;

  std::uint32_t magic = kMagic;
  std::uint32_t to = 0;    ///< number of the queue pair that receives it
  std::uint32_t from = 0;  ///< that of the sender
  std::uint32_t psn = 0;
  std::uint32_t part = 0;
  std::uint32_t parts = 1;
  std::uint8_t is_answer = 0;
  std::uint8_t opcode = 0;
  std::uint8_t solicited = 0;
  std::uint8_t answer = 0;  ///< Answer
  std::uint8_t rnr_timer = 0;
  std::uint8_t reserved[3]{};
  std::uint32_t immediate = 0;
  std::uint32_t rkey = 0;
  std::uint64_t remote = 0;
  std::uint64_t compare_add = 0;
  std::uint64_t swap = 0;
  std::uint64_t total = 0;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};

/// Maximum bytes of a part. With all headers it fits into an Ethernet frame of 9000 bytes.
inline constexpr std::uint64_t kPartBytes = 8192;
/// Maximum number of parts that have no answer yet.
inline constexpr std::uint32_t kWindow = 8;

/// A request to a queue pair of another card that is under way.
struct Exchange {
  enum class Part : std::uint8_t { unsent, sent, answered };

  Request request;
  std::vector<std::byte> bytes;  ///< to be sent, or that were read
  std::vector<Part> parts;
  std::uint32_t first = 0;  ///< that is not answered
  std::uint32_t answered = 0;
  std::chrono::steady_clock::time_point sent_at{};
  std::chrono::steady_clock::time_point progress_at{};
  Answer answer = Answer::done;  ///< an error, or that there is no receive
  std::uint8_t rnr_timer = 0;    ///< of the peer
};

/// The responder's record of the request that comes in, and of the one before it.
struct Arrival {
  std::vector<bool> parts;
  std::uint32_t arrived = 0;
  Answer last_answer = Answer::done;
  std::vector<std::byte> last_result;  ///< of an atomic operation
};

}  // namespace offload::rdma::model
