#include "apps/client/load/load_connection.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "tests/client/load/load_fixture.hpp"

namespace offload::client {
namespace {

TEST(LoadConnection, AllAnswered) {
  const auto pool = random_pool(40, Service::reverse);
  RunningLoad running(plan_of(1000, 16), pool);
  for (int i = 0; i < 1000; ++i)
    running.server().respond(reversed(running.server().read_request()));
  const auto& result = running.finish();
  EXPECT_EQ(running.fault(), "");
  EXPECT_EQ(result.sent, 1000U);
  EXPECT_EQ(result.answered, 1000U);
  EXPECT_EQ(result.valid, 1000U);
  EXPECT_EQ(result.tx_bytes, 52'000U);
  EXPECT_EQ(result.rx_bytes, 52'000U);
  EXPECT_EQ(result.service.count(), 1000U);
}

TEST(LoadConnection, ResponsesOneByteAtATime) {
  const auto pool = hello_pool();
  RunningLoad running(plan_of(20, 4), pool);
  for (int i = 0; i < 20; ++i) {
    const auto frame =
        protocol::make_frame(MessageId::client_response, reversed(running.server().read_request()));
    for (const std::byte& byte : frame) ASSERT_TRUE(running.server().write(std::span(&byte, 1)));
  }
  EXPECT_EQ(running.fault(), "");
  EXPECT_EQ(running.finish().valid, 20U);
}

TEST(LoadConnection, EmptyRequestsAndResponses) {
  const auto pool = random_pool(0, Service::echo);
  RunningLoad running(plan_of(10, 3), pool);
  for (int i = 0; i < 10; ++i) running.server().respond(running.server().read_request());
  EXPECT_EQ(running.fault(), "");
  EXPECT_EQ(running.finish().valid, 10U);
}

// More than the socket takes at once: partial writes must go on where they stopped.
TEST(LoadConnection, LargeRequestsArriveWhole) {
  constexpr std::size_t kSize = std::size_t{3} << 20;
  const auto pool = random_pool(kSize, Service::echo);
  RunningLoad running(plan_of(12, 4), pool);
  for (int i = 0; i < 12; ++i) {
    const auto request = running.server().read_request();
    ASSERT_EQ(request.size(), kSize);
    running.server().respond(request);
  }
  EXPECT_EQ(running.fault(), "");
  const auto& result = running.finish();
  EXPECT_EQ(result.valid, 12U);
  EXPECT_EQ(result.tx_bytes, 12 * (kSize + protocol::kFrameHeaderSize));
  EXPECT_EQ(result.rx_bytes, result.tx_bytes);
}

TEST(LoadConnection, TheWindowIsRefilledAndNeverExceeded) {
  const auto pool = hello_pool();
  RunningLoad running(plan_of(100, 4), pool);
  Bytes olleh;
  for (int i = 0; i < 4; ++i) olleh = reversed(running.server().read_request());
  EXPECT_FALSE(running.server().has_unread());
  for (int i = 4; i < 100; ++i) {
    // One answer makes room for exactly one request, while three are still due.
    running.server().respond(olleh);
    ASSERT_EQ(running.server().read_request().size(), 5U) << i;
    ASSERT_FALSE(running.server().has_unread()) << i;
  }
  for (int i = 0; i < 4; ++i) running.server().respond(olleh);
  EXPECT_EQ(running.fault(), "");
  EXPECT_EQ(running.finish().valid, 100U);
}

TEST(LoadConnection, AMismatchNamesThreadAndRequest) {
  const auto pool = random_pool(32, Service::reverse);
  RunningLoad running(plan_of(10, 2), pool);
  for (int i = 0; i < 3; ++i) running.server().respond(reversed(running.server().read_request()));
  auto wrong = reversed(running.server().read_request());
  wrong[30] ^= std::byte{1};
  running.server().respond(wrong);
  const auto& result = running.finish();
  EXPECT_EQ(
      running.fault().rfind("thread 7, request 3: the response differs at offset 30 of 32", 0), 0U)
      << running.fault();
  EXPECT_EQ(result.valid, 3U);
  EXPECT_EQ(result.answered, 4U);
}

// They are counted together up to the wrong one, and the rest of a frame is awaited.
TEST(LoadConnection, ResponsesThatComeTogetherAreCheckedOneByOne) {
  const auto pool = random_pool(32, Service::reverse);
  for (const std::size_t wrong : {0U, 5U, 7U, 8U}) {
    auto plan = plan_of(8, 8);
    plan.stop_on_error = false;
    RunningLoad running(plan, pool);
    Bytes all;
    for (std::size_t i = 0; i < 8; ++i) {
      auto response = reversed(running.server().read_request());
      if (i == wrong) response[31] ^= std::byte{1};
      const auto frame = protocol::make_frame(MessageId::client_response, response);
      all.insert(all.end(), frame.begin(), frame.end());
    }
    const std::span<const std::byte> bytes(all);
    ASSERT_TRUE(running.server().write(bytes.first(7 * 44 + 20)));
    ASSERT_TRUE(running.server().write(bytes.subspan(7 * 44 + 20)));
    const auto& result = running.finish();
    EXPECT_EQ(result.answered, 8U);
    EXPECT_EQ(result.valid, wrong < 8 ? 7U : 8U);
    EXPECT_EQ(result.service.count(), result.valid);
    EXPECT_EQ(result.errors.of(ErrorKind::mismatch), wrong < 8 ? 1U : 0U);
    if (wrong < 8) {
      EXPECT_EQ(running.fault().rfind(fmt::format("thread 7, request {}: ", wrong), 0), 0U);
    }
  }
}

TEST(LoadConnection, ResponsesThatComeTogetherHaveTheirOwnLatencies) {
  const auto pool = random_pool(32, Service::echo);
  RunningLoad running(plan_of(3, 2), pool);
  const auto first = running.server().read_request();
  const auto second = running.server().read_request();
  EXPECT_FALSE(running.server().read_more(30ms));
  running.server().respond(first);  // so the third is sent 30 ms after the second
  const auto third = running.server().read_request();
  auto both = protocol::make_frame(MessageId::client_response, second);
  const auto last = protocol::make_frame(MessageId::client_response, third);
  both.insert(both.end(), last.begin(), last.end());
  ASSERT_TRUE(running.server().write(both));
  const auto& result = running.finish();
  EXPECT_EQ(result.valid, 3U);
  EXPECT_GE(result.service.max() - result.service.min(), 29ms);
}

// Requests differ, so a response to a neighbouring one cannot pass.
TEST(LoadConnection, ResponsesOutOfOrderAreWrong) {
  const auto pool = random_pool(16, Service::echo);
  RunningLoad running(plan_of(2, 2), pool);
  const auto first = running.server().read_request();
  const auto second = running.server().read_request();
  running.server().respond(second);
  running.server().respond(first);
  EXPECT_EQ(running.fault().rfind("thread 7, request 0: the response differs", 0), 0U);
}

TEST(LoadConnection, ACloseCountsWhatIsUnanswered) {
  const auto pool = hello_pool();
  RunningLoad running(plan_of(10, 8), pool);
  running.server().respond(reversed(running.server().read_request()));
  for (int i = 0; i < 8; ++i) running.server().read_request();
  running.server().close();
  EXPECT_EQ(running.fault(),
            "thread 7, request 1: the server closed the connection; 8 requests unanswered");
}

// Whether the load thread notices first that it cannot send is chance, so several times.
TEST(LoadConnection, AnErrorFrameBeforeACloseIsReported) {
  const auto pool = random_pool(std::size_t{1} << 20, Service::echo);
  for (int i = 0; i < 10; ++i) {
    RunningLoad running(plan_of(100, 100), pool);
    // Closing with requests unread resets the connection while the load thread is still sending.
    ASSERT_TRUE(running.server().read_more(kBound));
    ASSERT_TRUE(running.server().write(
        protocol::make_error_frame(protocol::Refusal::frame_too_long, "1 MiB?")));
    running.server().close();
    ASSERT_EQ(running.fault(), "thread 7, request 0: the server reports error 2: 1 MiB?");
  }
}

TEST(LoadConnection, AnUnaskedResponseIsWrong) {
  const auto pool = hello_pool();
  RunningLoad running(plan_of(2, 1), pool);
  auto twice =
      protocol::make_frame(MessageId::client_response, reversed(running.server().read_request()));
  twice.insert(twice.end(), twice.begin(), twice.end());
  ASSERT_TRUE(running.server().write(twice));
  EXPECT_EQ(running.fault(), "thread 7, request 1: the server sent data without a request");
}

TEST(LoadConnection, SilenceIsAnError) {
  const auto pool = hello_pool();
  auto plan = plan_of(10, 4);
  plan.response_timeout = 50ms;
  RunningLoad running(plan, pool);
  running.server().respond(reversed(running.server().read_request()));
  EXPECT_EQ(running.fault().rfind("thread 7, request 1: no response for 0.0", 0), 0U)
      << running.fault();
  EXPECT_NE(running.fault().find("4 requests unanswered"), std::string::npos) << running.fault();
}

}  // namespace
}  // namespace offload::client
