#include "apps/rdma/pattern.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace offload::rdma_tool {
namespace {

using Word = std::array<std::byte, sizeof(std::uint64_t)>;

/// Steele's SplitMix64: its state is a counter, so two keys never run into each other for long.
class Words {
 public:
  explicit Words(const PatternKey& key) noexcept
      : state_(key.seed * 0x2545'f491'4f6c'dd1d ^ std::uint64_t{key.connection} << 33 ^
               (key.from_requester ? std::uint64_t{1} << 32 : 0)) {
    state_ = next_number() ^ key.iteration;
  }
  Word next() noexcept {
    const std::uint64_t number = next_number();
    Word word;
    std::memcpy(word.data(), &number, word.size());
    return word;
  }

 private:
  std::uint64_t next_number() noexcept {
    std::uint64_t mixed = (state_ += 0x9e37'79b9'7f4a'7c15);
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58'476d'1ce4'e5b9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d0'49bb'1331'11eb;
    return mixed ^ (mixed >> 31);
  }
  std::uint64_t state_;
};

}  // namespace

void fill(std::span<std::byte> message, const PatternKey& key) noexcept {
  Words words(key);
  for (auto rest = message; !rest.empty();) {
    const Word word = words.next();
    const std::size_t count = std::min(rest.size(), word.size());
    std::memcpy(rest.data(), word.data(), count);
    rest = rest.subspan(count);
  }
  message.back() = std::byte{last_byte(key.iteration)};
}

std::optional<Mismatch> find_mismatch(std::span<const std::byte> message,
                                      const PatternKey& key) noexcept {
  Words words(key);
  for (std::size_t at = 0; at < message.size();) {
    Word word = words.next();
    const std::size_t count = std::min(message.size() - at, word.size());
    if (at + count == message.size()) word[count - 1] = std::byte{last_byte(key.iteration)};
    if (std::memcmp(message.data() + at, word.data(), count) == 0) {
      at += count;
      continue;
    }
    std::size_t i = 0;
    while (message[at + i] == word[i]) ++i;
    return Mismatch{at + i, std::to_integer<std::uint8_t>(word[i]),
                    std::to_integer<std::uint8_t>(message[at + i])};
  }
  return std::nullopt;
}

}  // namespace offload::rdma_tool
