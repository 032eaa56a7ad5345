#include "kernels/rdma/common_receives.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <span>
#include <vector>

#include "rdma/queues/queue_memory.hpp"

/// One thread runs the steps of a receive queue that many threads share.
namespace offload::kernels::rdma {
namespace {

class CommonReceivesTest : public testing::Test {
 protected:
  static constexpr std::uint32_t kEntries = 64;

  [[nodiscard]] std::uint32_t record() const { return big_endian(*receives_.queue.record); }
  [[nodiscard]] std::uint32_t freed() const {
    return big_endian(*receives_.queue.completions.record);
  }
  WorkResult post(std::uint64_t& position) {
    const LocalBuffer buffer{4096 + posted_, 8, 7};
    ++posted_;
    return post_receive(receives_, buffer, position);
  }
  /// Completes the oldest receive, as the card does.
  void complete(Syndrome syndrome = Syndrome::none) {
    Completion completion{};
    completion.kind = syndrome == Syndrome::none ? CqeKind::received_send : CqeKind::receive_error;
    completion.syndrome = syndrome;
    completion.counter = static_cast<std::uint16_t>(written_);
    const CompletionQueue& completions = receives_.queue.completions;
    completions.entries[written_ & ((std::uint64_t{1} << completions.log2) - 1)] =
        make_cqe(completion, written_, completions.log2);
    ++written_;
  }

  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> memory_ =
      std::vector<Line>(offload::rdma::queue_memory_bytes({1, kEntries}) / sizeof(Line));
  offload::rdma::QueuePairMemory queues_ =
      offload::rdma::lay_out_queues(std::as_writable_bytes(std::span(memory_)), {1, kEntries}, 7);
  std::array<std::uint64_t, kEntries> marks_{};
  CommonReceiveState state_{};
  CommonReceives receives_{queues_.receive, &state_, marks_.data()};
  std::uint64_t posted_ = 0;
  std::uint64_t written_ = 0;
};

TEST_F(CommonReceivesTest, EachHasItsPlaceAndIsHandedOver) {
  for (std::uint64_t i = 0; i < kEntries; ++i) {
    std::uint64_t position = 99;
    ASSERT_EQ(post(position), WorkResult::done);
    EXPECT_EQ(position, i);
    EXPECT_EQ(record(), i + 1);
    const Segment expected = receive_segment({4096 + i, 8, 7});
    EXPECT_EQ(std::memcmp(&receives_.queue.ring[i], &expected, sizeof expected), 0);
  }
  std::uint64_t position = 99;
  EXPECT_EQ(post(position), WorkResult::pending);
  EXPECT_EQ(position, 99U);
  EXPECT_EQ(state_.under_way, kEntries);
}

TEST_F(CommonReceivesTest, ACompletionMakesRoomForOne) {
  std::uint64_t position = 0;
  for (std::uint64_t i = 0; i < kEntries; ++i) ASSERT_EQ(post(position), WorkResult::done);
  EXPECT_EQ(take_completions(receives_), 0U);
  EXPECT_FALSE(is_received(receives_, 0));
  complete();
  EXPECT_EQ(take_completions(receives_), 1U);
  EXPECT_EQ(freed(), 1U);
  EXPECT_TRUE(is_received(receives_, 0));
  EXPECT_FALSE(is_received(receives_, 1));
  ASSERT_EQ(post(position), WorkResult::done);
  EXPECT_EQ(position, kEntries);
  EXPECT_EQ(post(position), WorkResult::pending);
}

TEST_F(CommonReceivesTest, OneBehindAGapIsHandedOverWithTheGap) {
  state_.reserved = state_.under_way = 1;  // another thread, which has not written it
  std::uint64_t position = 0;
  ASSERT_EQ(post(position), WorkResult::done);
  EXPECT_EQ(position, 1U);
  EXPECT_EQ(record(), 0U);
  marks_[0] = 1;
  publish_filled(receives_);
  EXPECT_EQ(record(), 2U);
}

TEST_F(CommonReceivesTest, AreLeftToTheThreadThatPublishes) {
  state_.ringing = 1;
  std::uint64_t position = 0;
  ASSERT_EQ(post(position), WorkResult::done);
  EXPECT_EQ(record(), 0U);
  state_.ringing = 0;
  ASSERT_EQ(post(position), WorkResult::done);
  EXPECT_EQ(record(), 2U);
  EXPECT_EQ(state_.ringing, 0U);
}

TEST_F(CommonReceivesTest, CompletionsAreTakenByOneThreadAtATime) {
  std::uint64_t position = 0;
  ASSERT_EQ(post(position), WorkResult::done);
  complete();
  state_.looking = 1;
  EXPECT_EQ(take_completions(receives_), 0U);
  EXPECT_EQ(state_.looking, 1U);
  state_.looking = 0;
  EXPECT_EQ(take_completions(receives_), 1U);
  EXPECT_EQ(state_.looking, 0U);
}

TEST_F(CommonReceivesTest, ACallTakesALimitedNumber) {
  std::uint64_t position = 0;
  for (std::uint64_t i = 0; i < 40; ++i) {
    ASSERT_EQ(post(position), WorkResult::done);
    complete();
  }
  EXPECT_EQ(take_completions(receives_), 32U);
  EXPECT_EQ(freed(), 32U);
  EXPECT_EQ(state_.under_way, 8U);
  EXPECT_EQ(take_completions(receives_), 8U);
  EXPECT_EQ(take_completions(receives_), 0U);
  EXPECT_EQ(state_.under_way, 0U);
}

TEST_F(CommonReceivesTest, TheFirstErrorStays) {
  std::uint64_t position = 0;
  for (int i = 0; i < 3; ++i) ASSERT_EQ(post(position), WorkResult::done);
  complete();
  complete(Syndrome::local_length);
  complete(Syndrome::flushed);
  EXPECT_EQ(take_completions(receives_), 3U);
  const QueueError error{static_cast<std::uint32_t>(state_.error)};
  EXPECT_EQ(error.syndrome(), Syndrome::local_length);
  EXPECT_EQ(error.counter(), 1U);
  EXPECT_TRUE(is_received(receives_, 2));
  EXPECT_EQ(post(position), WorkResult::failed);
  EXPECT_EQ(position, 2U);
}

// The card sees 16 bits of a position, and 24 of a completion's.
TEST_F(CommonReceivesTest, GoOnForManyLaps) {
  std::uint64_t position = 0;
  for (std::uint64_t i = 0; i < 66'000; ++i) {
    ASSERT_EQ(post(position), WorkResult::done);
    ASSERT_EQ(position, i);
    ASSERT_EQ(record(), (i + 1) % 65536);
    ASSERT_FALSE(is_received(receives_, i));
    complete();
    ASSERT_EQ(take_completions(receives_), 1U);
    ASSERT_TRUE(is_received(receives_, i));
  }
  EXPECT_EQ(freed(), 66'000U);
}

TEST(SharedWord, IsRaisedOnly) {
  std::uint64_t word = 5;
  raise_to(&word, 4);
  EXPECT_EQ(word, 5U);
  raise_to(&word, 5);
  EXPECT_EQ(word, 5U);
  raise_to(&word, 7);
  EXPECT_EQ(word, 7U);
  EXPECT_EQ(compare_exchange_acq_rel(&word, 6, 8), 7U);
  EXPECT_EQ(word, 7U);
  EXPECT_EQ(compare_exchange_acq_rel(&word, 7, 8), 7U);
  EXPECT_EQ(word, 8U);
}

}  // namespace
}  // namespace offload::kernels::rdma
