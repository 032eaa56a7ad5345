#include "kernels/module/payload.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>

#include "tests/kernels/reference.hpp"

namespace offload::kernels::test {
namespace {

/// A request of the bytes 1, 2, 3, ... between bytes that are not zero.
class CountedRequest {
 public:
  explicit CountedRequest(std::uint32_t length)
      : bytes_(kSlack + length + kSlack, 0xee), length_(length) {
    for (std::uint32_t i = 0; i < length; ++i) bytes_[kSlack + i] = byte(i);
  }
  static std::uint8_t byte(std::uint32_t i) { return static_cast<std::uint8_t>(i + 1); }

  [[nodiscard]] Request request() const { return {bytes_.data() + kSlack, length_}; }

  /// The 16 bytes from `offset` on, zero behind the end.
  [[nodiscard]] Octets expected(std::uint32_t offset) const {
    Octets octets(sizeof(Block), 0);
    for (std::uint32_t i = 0; i < sizeof(Block) && offset + i < length_; ++i) {
      octets[i] = byte(offset + i);
    }
    return octets;
  }

 private:
  Octets bytes_;
  std::uint32_t length_;
};

Octets bytes_of(const Block& block) {
  Octets octets(sizeof block);
  std::memcpy(octets.data(), &block, sizeof block);
  return octets;
}

TEST(Payload, ABlockHasZerosBehindTheEnd) {
  for (std::uint32_t length = 0; length <= 33; ++length) {
    const CountedRequest counted(length);
    for (std::uint32_t offset = 0; offset < length + 2; ++offset) {
      ASSERT_EQ(bytes_of(block_within(counted.request(), offset)), counted.expected(offset))
          << offset << " of " << length;
    }
    ASSERT_EQ(bytes_of(block_within(counted.request(), UINT32_MAX)), Octets(sizeof(Block), 0));
  }
}

TEST(Payload, NumbersAreReadAtAnyOffsetWithinThePayload) {
  const CountedRequest counted(9);
  std::uint32_t word = 7;
  std::uint64_t number = 7;
  ASSERT_TRUE(read_little_endian(counted.request(), 0, word));
  EXPECT_EQ(word, 0x04030201U);
  ASSERT_TRUE(read_little_endian(counted.request(), 5, word));
  EXPECT_EQ(word, 0x09080706U);
  ASSERT_TRUE(read_little_endian(counted.request(), 1, number));
  EXPECT_EQ(number, 0x0908070605040302U);
}

TEST(Payload, ANumberThatIsNotWholeIsNotRead) {
  const auto is_read = [](std::uint32_t length, std::uint32_t offset, auto number) {
    const auto before = number;
    const bool whole = read_little_endian(CountedRequest(length).request(), offset, number);
    EXPECT_EQ(whole, number != before) << offset << " of " << length;
    return whole;
  };
  EXPECT_FALSE(is_read(9, 6, 7U));
  EXPECT_FALSE(is_read(9, 2, std::uint64_t{7}));
  EXPECT_FALSE(is_read(3, 0, 7U));
  EXPECT_TRUE(is_read(4, 0, 7U));
  EXPECT_FALSE(is_read(7, 0, std::uint64_t{7}));
  EXPECT_TRUE(is_read(8, 0, std::uint64_t{7}));
  EXPECT_FALSE(is_read(0, 0, 7U));
  // A sum of offset and size would be 2.
  EXPECT_FALSE(is_read(9, UINT32_MAX - 1, 7U));
}

}  // namespace
}  // namespace offload::kernels::test
