#include "kernels/services/reverse.hpp"

#include <gtest/gtest.h>

#include "tests/kernels/services/service_answer.hpp"

namespace offload::kernels::test {

// Lengths that are multiples of a block take another path.
TEST(ReverseService, AnswersTheBytesInReverseOrder) {
  EXPECT_EQ(answer_of(Reverse{}, {}), Octets{});
  EXPECT_EQ(answer_of(Reverse{}, octets_of("x")), octets_of("x"));
  EXPECT_EQ(answer_of(Reverse{}, octets_of("abc")), octets_of("cba"));
  EXPECT_EQ(answer_of(Reverse{}, octets_of("0123456789abcdef")), octets_of("fedcba9876543210"));
  EXPECT_EQ(answer_of(Reverse{}, octets_of("0123456789abcdefg")), octets_of("gfedcba9876543210"));
}

TEST(ReverseService, TwiceIsTheRequest) {
  for (const std::size_t length : {15U, 16U, 31U, 32U, 33U, 4096U, 65'537U}) {
    const Octets request = random_octets(length);
    EXPECT_EQ(answer_of(Reverse{}, answer_of(Reverse{}, request)), request) << length;
  }
}

}  // namespace offload::kernels::test
