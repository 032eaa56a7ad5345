#include "kernels/services/crc32c.hpp"

#include <gtest/gtest.h>

#include "tests/kernels/services/service_answer.hpp"

namespace offload::kernels::test {

TEST(Crc32cService, AnswersTheChecksumInLittleEndian) {
  EXPECT_EQ(answer_of(Crc32c{}, {}), Octets(4));
  EXPECT_EQ(answer_of(Crc32c{}, octets_of("123456789")), (Octets{0x83, 0x92, 0x06, 0xe3}));
}

TEST(Crc32cService, AnswersFourBytesToAnyRequest) {
  for (const std::uint32_t length : {0U, 1U, 3U, 373U, kMaxMessageLength}) {
    EXPECT_EQ(Crc32c::response_length(length), 4U);
  }
}

}  // namespace offload::kernels::test
