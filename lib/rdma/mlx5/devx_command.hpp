#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

/// Commands of an mlx5 card, as its driver passes them on (mlx5dv_devx_obj_create(3)). The fields
/// of a command are named by their first bit, in the order of mlx5_ifc.h of the Linux kernel.
namespace offload::rdma::mlx5 {

/// A field of a command or of an answer. It lies within a word of 32 bits, or is two of them.
struct DevxField {
  std::uint32_t first;  ///< bit, from the begin
  std::uint32_t width;
};

/// Returns the field of a structure that begins at bit `begin`.
constexpr DevxField operator+(std::uint32_t begin, DevxField field) {
  return {begin + field.first, field.width};
}

/// The bytes of a command or of an answer.
template <std::size_t bytes>
class DevxMessage {
 public:
  /// Sets a field that is 0 before. `value` has no more bits than the field.
  constexpr void set(DevxField field, std::uint64_t value) {
    if (field.width == 64) {
      words_[field.first / 32] = big_endian(static_cast<std::uint32_t>(value >> 32));
      words_[field.first / 32 + 1] = big_endian(static_cast<std::uint32_t>(value));
      return;
    }
    const auto bits = static_cast<std::uint32_t>(value);
    words_[field.first / 32] |= big_endian(bits << (32 - field.width - field.first % 32));
  }
  [[nodiscard]] constexpr std::uint32_t get(DevxField field) const {
    const std::uint32_t word = big_endian(words_[field.first / 32]);
    return word << field.first % 32 >> (32 - field.width);
  }
  [[nodiscard]] std::uint8_t* bytes_at(std::uint32_t bit) {
    return reinterpret_cast<std::uint8_t*>(words_.data()) + bit / 8;
  }
  [[nodiscard]] void* data() { return words_.data(); }
  [[nodiscard]] const void* data() const { return words_.data(); }
  static constexpr std::size_t size() { return bytes; }

 private:
  static constexpr std::uint32_t big_endian(std::uint32_t word) {
    return std::endian::native == std::endian::little ? __builtin_bswap32(word) : word;
  }

  std::array<std::uint32_t, bytes / 4> words_{};
};

/// Those that make an object, or change a queue pair with its context, have the same size.
using DevxCommand = DevxMessage<272>;
using ShortDevxCommand = DevxMessage<16>;
using DevxAnswer = DevxMessage<16>;

/// Fields of each command.
inline constexpr DevxField kOpcode{0, 16};
inline constexpr DevxField kMode{0x30, 16};
inline constexpr DevxField kNumber{0x48, 24};  ///< of the object, in answers too

/// Bits at which structures begin in commands and in answers.
inline constexpr std::uint32_t kQpContext = 0xc0;
inline constexpr std::uint32_t kCqContext = 0x80;
inline constexpr std::uint32_t kRmpContext = 0x100;
inline constexpr std::uint32_t kWqOfRmp = kRmpContext + 0x180;
inline constexpr std::uint32_t kPathOfQp = kQpContext + 0xc0;
inline constexpr std::uint32_t kAbilities = 0x80;

enum class DevxOpcode : std::uint16_t {
  query_abilities = 0x100,
  create_cq = 0x400,
  create_qp = 0x500,
  reset_to_init = 0x502,
  init_to_receive = 0x503,
  receive_to_send = 0x504,
  to_error = 0x507,
  to_reset = 0x50a,
  create_rmp = 0x90c,
};

}  // namespace offload::rdma::mlx5
