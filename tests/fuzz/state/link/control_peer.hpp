#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "channel/channel_memory.hpp"
#include "comch/transport/control_connection.hpp"
#include "core/fd.hpp"
#include "tests/fuzz/state/script.hpp"

namespace offload::fuzz {

using Bytes = std::vector<std::byte>;

/// The script's end of a control connection, over a Unix socket (packets, with descriptors) or a
/// stream. The product's end must send whole control messages.
class ControlPeer {
 public:
  ControlPeer(core::Fd socket, bool packets) : socket_(std::move(socket)), packets_(packets) {}

  [[nodiscard]] bool connected() const noexcept { return socket_.valid(); }
  [[nodiscard]] bool packets() const noexcept { return packets_; }
  /// Sends all but the last `kept` bytes, which are sent before the next ones (only over a stream).
  /// The caller keeps the descriptors.
  void send(std::span<const std::byte> bytes, std::span<const int> fds = {}, std::size_t kept = 0);
  void send(protocol::MessageId id, std::span<const std::byte> payload,
            std::span<const int> fds = {}) {
    send(protocol::make_frame(id, payload), fds);
  }
  void end_sending();
  void close() { socket_.reset(); }
  /// Returns the messages that have arrived.
  std::vector<comch::ControlMessage> read();
  /// Returns whether the other end has closed it, as read() found.
  [[nodiscard]] bool ended() const noexcept { return ended_; }
  /// Returns whether the bytes sent over a stream contain `bytes`.
  [[nodiscard]] bool has_said(std::span<const std::byte> bytes) const;

 private:
  core::Fd socket_;
  bool packets_;
  Bytes kept_;
  Bytes said_;
  Bytes received_;
  bool ended_ = false;
};

/// Connects to a Unix socket of packets.
core::Fd connect_packets(const std::string& path);

/// Makes a frame: a message of any kind with right or wrong values, perhaps shortened or with a
/// byte changed. Its operands: kind (low five bits), values, and with 0x80 of the kind how it is
/// spoilt. `token`: the session's, for messages that carry it.
Bytes make_message(Script& script, const protocol::Token& token);

/// All channels' memories and other descriptors, made once for all runs.
struct Descriptors {
  static constexpr std::uint32_t kChannels = 2;
  static constexpr std::uint32_t kDepth = 4;
  static constexpr std::uint32_t kLongest = 600;
  static Descriptors& instance();

  std::vector<std::unique_ptr<channel::ChannelMemory>> channels;
  core::Fd unsealed;  ///< memory that could shrink
  core::Fd null;      ///< a descriptor of another kind
};

/// Picks descriptors to send: the right ones of a channel, wrong ones, too few, too many. One
/// operand.
std::vector<int> pick_descriptors(Script& script);

}  // namespace offload::fuzz
