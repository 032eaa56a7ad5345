#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/platform.hpp"

/// The bytes of messages, word for word: made and compared by the lanes of a group, on a GPU or a
/// CPU. C++17, as device code is.
namespace offload::rdma_tool {

/// The key that the bytes of a message are made from, so that both ends can make them. Messages of
/// consecutive iterations differ in their last byte, which is never 0, so that an end that polls
/// for a write sees it change.
struct PatternKey {
  std::uint64_t seed = 0;
  std::uint32_t connection = 0;
  bool from_requester = true;
  std::uint64_t iteration = 0;
};

struct Mismatch {
  std::size_t offset;
  std::uint8_t expected;
  std::uint8_t got;
};

/// The last byte of an iteration's message.
OFFLOAD_HOST_DEVICE constexpr std::uint8_t last_byte(std::uint64_t iteration) noexcept {
  return static_cast<std::uint8_t>(iteration % 255 + 1);
}

/// Words of a message, but for its last byte. Steele's SplitMix64: its state is a counter, so each
/// word can be made alone, and two keys never run into each other for long.
class PatternWords {
 public:
  OFFLOAD_HOST_DEVICE explicit PatternWords(const PatternKey& key) noexcept
      : begin_(mix((key.seed * 0x2545'f491'4f6c'dd1d ^ std::uint64_t{key.connection} << 33 ^
                    (key.from_requester ? std::uint64_t{1} << 32 : 0)) +
                   kStep) ^
               key.iteration) {}
  [[nodiscard]] OFFLOAD_HOST_DEVICE std::uint64_t at(std::uint64_t index) const noexcept {
    return mix(begin_ + (index + 1) * kStep);
  }

 private:
  static constexpr std::uint64_t kStep = 0x9e37'79b9'7f4a'7c15;

  OFFLOAD_HOST_DEVICE static std::uint64_t mix(std::uint64_t state) noexcept {
    state = (state ^ (state >> 30)) * 0xbf58'476d'1ce4'e5b9;
    state = (state ^ (state >> 27)) * 0x94d0'49bb'1331'11eb;
    return state ^ (state >> 31);
  }
  std::uint64_t begin_;
};

/// Up to 8 bytes of a message at `offset`, and how many these are.
struct PatternPiece {
  alignas(std::uint64_t) std::uint8_t bytes[sizeof(std::uint64_t)];
  std::size_t count;

  /// Returns the expected words.
  OFFLOAD_HOST_DEVICE static PatternPiece expected(const PatternWords& words, std::size_t size,
                                                   std::uint64_t iteration, std::size_t offset) {
    PatternPiece piece = of(size, offset);
    const std::uint64_t word = words.at(offset / sizeof word);
    std::memcpy(piece.bytes, &word, sizeof word);
    if (offset + piece.count == size) piece.bytes[piece.count - 1] = last_byte(iteration);
    return piece;
  }
  /// Returns the words in memory.
  OFFLOAD_HOST_DEVICE static PatternPiece read(const std::byte* message, std::size_t size,
                                               std::size_t offset) {
    PatternPiece piece = of(size, offset);
    copy(piece.bytes, message + offset, piece.count);
    return piece;
  }
  OFFLOAD_HOST_DEVICE void write(std::byte* message, std::size_t offset) const {
    copy(message + offset, bytes, count);
  }
  /// The first byte that is another; `count` if there is none.
  [[nodiscard]] OFFLOAD_HOST_DEVICE std::size_t difference(const PatternPiece& other) const {
    std::size_t i = 0;
    while (i < count && bytes[i] == other.bytes[i]) ++i;
    return i;
  }

 private:
  OFFLOAD_HOST_DEVICE static PatternPiece of(std::size_t size, std::size_t offset) {
    const std::size_t rest = size - offset;
    return {{}, rest < sizeof(std::uint64_t) ? rest : sizeof(std::uint64_t)};
  }
  /// Whole words at once, as messages are aligned: a GPU reads memory of the host by accesses.
  OFFLOAD_HOST_DEVICE static void copy(void* to, const void* from, std::size_t count) {
    constexpr std::size_t kWord = sizeof(std::uint64_t);
    if (count == kWord) {
      std::memcpy(__builtin_assume_aligned(to, kWord), __builtin_assume_aligned(from, kWord),
                  kWord);
    } else {
      for (std::size_t i = 0; i < count; ++i) {
        static_cast<std::uint8_t*>(to)[i] = static_cast<const std::uint8_t*>(from)[i];
      }
    }
  }
};

/// Makes a message of at least one byte, aligned to 8, with all lanes of a group.
template <class Group>
OFFLOAD_HOST_DEVICE void make_message(const Group& group, std::byte* message, std::size_t size,
                                      const PatternKey& key) {
  const PatternWords words(key);
  const std::size_t step = std::size_t{group.size()} * sizeof(std::uint64_t);
  for (std::size_t at = group.lane() * sizeof(std::uint64_t); at < size; at += step) {
    PatternPiece::expected(words, size, key.iteration, at).write(message, at);
  }
}

/// Whether a message, aligned to 8, is what make_message() makes; else the first byte that is not,
/// in every lane.
template <class Group>
OFFLOAD_HOST_DEVICE bool is_message(const Group& group, const std::byte* message, std::size_t size,
                                    const PatternKey& key, Mismatch& first) {
  const PatternWords words(key);
  const std::size_t step = std::size_t{group.size()} * sizeof(std::uint64_t);
  for (std::size_t begin = 0; begin < size; begin += step) {
    const std::size_t at = begin + group.lane() * sizeof(std::uint64_t);
    PatternPiece expected{};
    PatternPiece got{};
    std::size_t wrong = 0;
    if (at < size) {
      expected = PatternPiece::expected(words, size, key.iteration, at);
      got = PatternPiece::read(message, size, at);
      wrong = expected.difference(got);
    }
    const bool right = wrong == expected.count;
    if (group.all(right)) continue;
    const bool is_first = group.exclusive_sum(right ? 0 : 1) == 0 && !right;
    const auto from_it = [&](std::size_t value) {
      return group.combine_xor(is_first ? static_cast<std::uint32_t>(value) : 0);
    };
    first.offset = from_it(at + wrong);
    first.expected = static_cast<std::uint8_t>(from_it(right ? 0 : expected.bytes[wrong]));
    first.got = static_cast<std::uint8_t>(from_it(right ? 0 : got.bytes[wrong]));
    return false;
  }
  return true;
}

}  // namespace offload::rdma_tool
