#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <optional>

#include "tests/backend/backend_kinds.hpp"
#include "tests/backend/posted_channel.hpp"

/// Back ends that post their responses themselves, with each of them that can run here.
namespace offload::backend {
namespace {

using namespace std::chrono_literals;
using support::Bytes;
using test::Kind;
using test::PostedChannel;

class PostedResponses : public test::BackendTest {
 protected:
  void SetUp() override {
    BackendTest::SetUp();
    if (!backend_) return;  // skipped
    EXPECT_TRUE(backend_->posts_responses());
  }

  void start(PostedChannel& channel) { backend_->start({channel.to_backend()}, "reverse"); }

  /// Keeps the channel full with messages of `length(i)` bytes, and checks every answer.
  template <class Length>
  static void expect_right_answers(PostedChannel& channel, std::uint32_t count, Length length) {
    std::deque<Bytes> due;
    std::uint32_t posted = 0;
    for (std::uint32_t answered = 0; answered < count; ++answered) {
      for (; posted < count; ++posted) {
        Bytes message = support::random_bytes(length(posted), posted);
        if (!channel.post(message)) break;
        std::ranges::reverse(message);
        due.push_back(std::move(message));
      }
      const auto response = channel.await();
      ASSERT_TRUE(response.has_value()) << "message " << answered << ": " << channel.fault();
      ASSERT_EQ(*response, due.front()) << "message " << answered;
      due.pop_front();
    }
  }
};

TEST_P(PostedResponses, OfAllSizes) {
  constexpr std::uint32_t kLongest = 20'000;
  constexpr std::uint32_t kSizes[] = {0, 1, 12, 13, 371, 372, 373, 500, 4096, kLongest};
  PostedChannel channel(8, kLongest);
  start(channel);
  expect_right_answers(channel, 300,
                       [&](std::uint32_t i) { return kSizes[i % std::size(kSizes)]; });
  EXPECT_TRUE(backend_->stop(5s));
  EXPECT_EQ(channel.fault(), "");
}

TEST_P(PostedResponses, OfManyShortMessages) {
  PostedChannel channel(64, kernels::kMaxPacketPayload);
  start(channel);
  expect_right_answers(channel, 5'000, [](std::uint32_t i) { return i % 372; });
  EXPECT_TRUE(backend_->stop(5s));
  EXPECT_EQ(channel.fault(), "");
}

TEST_P(PostedResponses, OfBatches) {
  PostedChannel channel(8, 1000);
  start(channel);
  std::deque<Bytes> due;
  std::uint32_t posted = 0;
  for (std::uint32_t answered = 0; answered < 3'000; ++answered) {
    for (; posted < 3'000 && due.size() < 256; ++posted) {
      Bytes message = support::random_bytes(posted % 100, posted);
      if (!channel.gather(message)) break;
      std::ranges::reverse(message);
      due.push_back(std::move(message));
    }
    channel.flush();
    const auto response = channel.await();
    ASSERT_TRUE(response.has_value()) << "message " << answered << ": " << channel.fault();
    ASSERT_EQ(*response, due.front()) << "message " << answered;
    due.pop_front();
  }
  EXPECT_TRUE(backend_->stop(5s));
  EXPECT_EQ(channel.fault(), "");
}

// A refusal is posted as a response as well.
TEST_P(PostedResponses, OfAMalformedRequest) {
  PostedChannel channel(8, 1000);
  start(channel);
  channel.forge_length(1001);
  EXPECT_TRUE(support::eventually([&] { return channel.refused(); }));
  std::vector<Fault> faults;
  EXPECT_TRUE(support::eventually([&] { return !(faults = backend_->check()).empty(); }));
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_EQ(faults[0].length, 1001U);
  EXPECT_TRUE(backend_->stop(5s));
}

TEST_P(PostedResponses, StopWhereTheQueueIsBroken) {
  PostedChannel channel(8, 1000, PostedChannel::Peer::of_unknown_key);
  start(channel);
  std::uint32_t posted = 0;
  while (posted < 8 && channel.post(support::random_bytes(10, posted))) ++posted;
  EXPECT_EQ(posted, 8U);
  EXPECT_FALSE(channel.take().has_value());
  EXPECT_TRUE(backend_->stop(5s));
}

INSTANTIATE_TEST_SUITE_P(, PostedResponses,
                         testing::Values(Kind{"cpu", [] { return make_cpu_backend(50us); }},
                                         Kind{"cuda",
                                              [] {
                                                CudaOptions options;
                                                options.idle_sleep = 20us;
                                                return make_cuda_backend(options);
                                              }}),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace offload::backend
