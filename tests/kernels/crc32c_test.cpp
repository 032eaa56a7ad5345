#include "kernels/crc32c.hpp"

#include <gtest/gtest.h>

#include "tests/kernels/reference.hpp"

namespace offload::kernels::test {

TEST(Crc32cOfBytes, IsTheReferences) {
  for (const std::size_t length : {0U, 1U, 9U, 4096U}) {
    const auto octets = random_octets(length);
    EXPECT_EQ(crc32c(octets.data(), octets.size()), crc32c_of(octets));
  }
}

TEST(Crc32cOfBytes, IsThatOfThePublishedVectors) {
  const Octets digits{'1', '2', '3', '4', '5', '6', '7', '8', '9'};
  EXPECT_EQ(crc32c(digits.data(), digits.size()), 0xe306'9283U);
  const Octets zeros(32);  // RFC 3720, appendix B.4
  EXPECT_EQ(crc32c(zeros.data(), zeros.size()), 0x8a91'36aaU);
}

// The property that lets each lane of a group checksum a part of a message.
TEST(Crc32cArithmeticTest, ChecksumsOfTwoPartsJoinToThatOfTheWhole) {
  const Octets whole = random_octets(1000);
  for (const std::size_t cut : {0U, 1U, 333U, 999U, 1000U}) {
    const auto raw = [&](std::uint32_t crc, std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) crc = Crc32cArithmetic::advance(crc ^ whole[i]);
      return crc;
    };
    const std::uint32_t shift = Crc32cArithmetic::power_of_x(8 * (whole.size() - cut));
    const std::uint32_t joined =
        Crc32cArithmetic::multiply(raw(~0U, 0, cut), shift) ^ raw(0, cut, whole.size());
    EXPECT_EQ(~joined, crc32c_of(whole)) << cut;
  }
}

}  // namespace offload::kernels::test
