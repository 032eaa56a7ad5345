#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>

#include "kernels/slot.hpp"
#include "kernels/vector_access.hpp"
#include "tests/kernels/reference.hpp"

namespace offload::kernels::test {

/// A channel in a runner's memory and the server's end of it, written for tests: plainly.
template <class Runner>
class TestChannel {
 public:
  TestChannel(std::uint32_t depth, std::uint32_t max_length)
      : layout_(make_layout(depth, max_length)), memory_(layout_.bytes) {}

  [[nodiscard]] Channel channel() const { return {memory_.data(), layout_}; }
  [[nodiscard]] const ChannelLayout& layout() const { return layout_; }

  /// All of it `value`: no turn of a test looks like that.
  void fill(std::uint8_t value) { std::memset(memory_.data(), value, layout_.bytes); }
  [[nodiscard]] Octets bytes() const { return {memory_.data(), memory_.data() + layout_.bytes}; }
  /// Where a part starts in bytes().
  [[nodiscard]] std::size_t offset_of(const Part& part) const {
    return static_cast<std::size_t>(reinterpret_cast<std::uint8_t*>(part.vectors) - memory_.data());
  }

  void post(std::uint64_t sequence, const Octets& message) {
    write(channel().request(sequence), layout_.turn_of(sequence), message, Status::ok);
  }
  /// As a worker would answer.
  void answer(std::uint64_t sequence, const Octets& message) {
    write(channel().response(sequence), layout_.turn_of(sequence), message, Status::ok);
  }
  /// A request's header that claims `length`, with nothing behind it.
  void post_header(std::uint64_t sequence, std::uint32_t length) {
    store_vector(channel().request(sequence).vectors, {{length, 0, 0}, layout_.turn_of(sequence)});
  }

  /// The response to message `sequence`, if it is there whole, with status ok.
  [[nodiscard]] std::optional<Octets> response(std::uint64_t sequence) const {
    const Part part = channel().response(sequence);
    const std::uint32_t turn = layout_.turn_of(sequence);
    const Vector header = load_vector(part.vectors);
    if (header.turn != turn || header.data[1] != 0) return std::nullopt;
    const std::uint32_t length = header.data[0];
    if (length > layout_.max_length) return std::nullopt;
    if (length > kMaxPacked) return Octets(part.plain, part.plain + length);
    Octets message(length);
    for (std::uint32_t offset = 0; offset < length; offset += kVectorData) {
      const Vector vector = load_vector(part.vectors + 1 + offset / kVectorData);
      if (vector.turn != turn) return std::nullopt;
      std::memcpy(message.data() + offset, vector.data, std::min(kVectorData, length - offset));
    }
    return message;
  }

 private:
  static void write(const Part& part, std::uint32_t turn, const Octets& message, Status status) {
    const auto length = static_cast<std::uint32_t>(message.size());
    if (length > kMaxPacked) {
      std::memcpy(part.plain, message.data(), length);
    } else {
      for (std::uint32_t offset = 0; offset < length; offset += kVectorData) {
        Vector vector{{}, turn};
        std::memcpy(vector.data, message.data() + offset, std::min(kVectorData, length - offset));
        store_vector(part.vectors + 1 + offset / kVectorData, vector);
      }
    }
    store_vector(part.vectors, {{length, static_cast<std::uint32_t>(status), 0}, turn});
  }

  ChannelLayout layout_;
  typename Runner::Memory memory_;
};

}  // namespace offload::kernels::test
