#include "kernels/services/echo.hpp"

#include <gtest/gtest.h>

#include "tests/kernels/services/service_answer.hpp"

namespace offload::kernels::test {

TEST(EchoService, AnswersTheRequest) {
  EXPECT_EQ(answer_of(Echo{}, {}), Octets{});
  EXPECT_EQ(answer_of(Echo{}, octets_of("abc")), octets_of("abc"));
  EXPECT_EQ(answer_of(Echo{}, octets_of("sixteen bytes it")), octets_of("sixteen bytes it"));
  EXPECT_EQ(answer_of(Echo{}, octets_of("seventeen bytes it")), octets_of("seventeen bytes it"));
}

TEST(EchoService, AnswersAsManyBytesAsItIsAsked) {
  for (const std::uint32_t length : {0U, 1U, 372U, 373U, kMaxMessageLength}) {
    EXPECT_EQ(Echo::response_length(length), length);
  }
}

}  // namespace offload::kernels::test
