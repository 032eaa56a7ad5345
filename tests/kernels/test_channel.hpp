#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>

#include "kernels/channel_layout.hpp"
#include "kernels/channel_packets.hpp"
#include "tests/kernels/reference.hpp"

namespace offload::kernels::test {

/// A channel in a runner's memory, its responses behind its requests, with a simple server's end
/// for tests.
template <class Runner>
class TestChannel {
 public:
  TestChannel(std::uint32_t depth, std::uint32_t max_length)
      : layout_(make_layout(depth, max_length)), memory_(layout_.bytes()) {}

  [[nodiscard]] ChannelView channel() const {
    return {memory_.data(), memory_.data() + layout_.request_bytes, layout_};
  }
  [[nodiscard]] const ChannelLayout& layout() const { return layout_; }

  /// Sets each byte to `value`: no flag of a test has this form.
  void fill(std::uint8_t value) { std::memset(memory_.data(), value, layout_.bytes()); }
  [[nodiscard]] Octets bytes() const { return {memory_.data(), memory_.data() + layout_.bytes()}; }
  /// Returns the offset of a slot in bytes().
  [[nodiscard]] std::size_t offset_of(const Slot& slot) const {
    return static_cast<std::size_t>(reinterpret_cast<std::uint8_t*>(slot.packets) - memory_.data());
  }

  /// `count`: as the header's.
  void post(std::uint64_t sequence, const Octets& content, std::uint32_t count = 0) {
    write(channel().request(sequence), layout_.flag_of(sequence), content, count);
  }
  /// Posts a response as a worker would.
  void answer(std::uint64_t sequence, const Octets& message) {
    write(channel().response(sequence), layout_.flag_of(sequence), message, 0);
  }
  /// Posts a request's header with this length and count, with nothing behind it.
  void post_header(std::uint64_t sequence, std::uint32_t length, std::uint32_t count = 0) {
    store_packet(channel().request(sequence).packets,
                 {{length, 0, count}, layout_.flag_of(sequence)});
  }

  /// Returns the response's content, if it is there whole, with status ok and this count.
  [[nodiscard]] std::optional<Octets> response(std::uint64_t sequence,
                                               std::uint32_t count = 0) const {
    const Slot slot = channel().response(sequence);
    const std::uint32_t flag = layout_.flag_of(sequence);
    const Packet header = load_packet(slot.packets);
    if (header.flag != flag || header.data[1] != 0 || header.data[2] != count) {
      return std::nullopt;
    }
    const std::uint32_t length = header.data[0];
    if (length > layout_.max_content) return std::nullopt;
    if (length > kMaxPacketPayload) return Octets(slot.plain(), slot.plain() + length);
    Octets message(length);
    for (std::uint32_t offset = 0; offset < length; offset += kPacketData) {
      const Packet packet = load_packet(slot.packets + 1 + offset / kPacketData);
      if (packet.flag != flag) return std::nullopt;
      std::memcpy(message.data() + offset, packet.data, std::min(kPacketData, length - offset));
    }
    return message;
  }

 private:
  static void write(const Slot& slot, std::uint32_t flag, const Octets& message,
                    std::uint32_t count) {
    const auto length = static_cast<std::uint32_t>(message.size());
    if (length > kMaxPacketPayload) {
      std::memcpy(slot.plain(), message.data(), length);
    } else {
      for (std::uint32_t offset = 0; offset < length; offset += kPacketData) {
        Packet packet{{}, flag};
        std::memcpy(packet.data, message.data() + offset, std::min(kPacketData, length - offset));
        store_packet(slot.packets + 1 + offset / kPacketData, packet);
      }
    }
    store_packet(slot.packets, {{length, 0, count}, flag});
  }

  ChannelLayout layout_;
  typename Runner::Memory memory_;
};

}  // namespace offload::kernels::test
