#include "backend/staged_batch.hpp"

#include <gtest/gtest.h>

#include "kernels/services.hpp"
#include "tests/backend/host_processor.hpp"
#include "tests/backend/served_channel.hpp"

/// Messages from their slots into a batch and back, without a thread.
namespace offload::backend {
namespace {

using kernels::ResponseStatus;
using support::Bytes;
using Taken = StagedBatch::Taken;

class Staged : public testing::Test {
 protected:
  static constexpr std::uint32_t kLongest = 1000;
  static constexpr std::uint32_t kCapacity = kernels::room_of_slot(kLongest);

  void run() {
    EXPECT_TRUE(processor_.launch(0, batch_.bytes()));
    while (processor_.look(0) == BatchProcessor::State::running) continue;
  }
  Taken take(std::uint64_t sequence) { return batch_.take(channel_.memory(), sequence, staging_); }

  /// Messages of these lengths in one slot. Returns what they are answered.
  std::vector<Bytes> post_batch(const std::vector<std::uint32_t>& lengths) {
    std::vector<Bytes> due;
    for (const std::uint32_t length : lengths) {
      const auto message = support::random_bytes(length, static_cast<std::uint32_t>(due.size()));
      EXPECT_TRUE(channel_.gather(message));
      due.push_back(support::reversed(message));
    }
    const auto slots = channel_.server.requester.slots().posted();
    channel_.flush();
    EXPECT_EQ(channel_.server.requester.slots().posted(), slots + 1);
    return due;
  }

  test::ServedChannel channel_{0, 64, kLongest};
  test::Orders orders_;
  test::HostProcessor processor_{orders_, "reverse", kLongest, 1, kCapacity};
  StagedBatch batch_{processor_.requests(0), processor_.responses(0), kCapacity};
  kernels::Staging staging_{};

  void SetUp() override { processor_.start_thread(); }
};

TEST_F(Staged, TakesWhatHasComeAndAnswersIt) {
  std::vector<Bytes> messages;
  for (const std::uint32_t length : {0U, 13U, 372U, 373U, 500U}) {
    messages.push_back(support::random_bytes(length, length));
    ASSERT_TRUE(channel_.post(messages.back()));
    EXPECT_EQ(take(messages.size() - 1), Taken::added);
  }
  EXPECT_EQ(take(messages.size()), Taken::nothing);
  EXPECT_EQ(batch_.count(), messages.size());
  EXPECT_EQ(batch_.bytes(), 48U + 48 + 384 + 384 + 512);
  run();
  for (std::uint32_t i = 0; i < batch_.count(); ++i) {
    EXPECT_EQ(batch_.sequence(i), i);
    EXPECT_TRUE(batch_.answer(channel_.memory(), i, staging_));
    EXPECT_EQ(channel_.take(), support::reversed(messages[i])) << i;
  }
}

TEST_F(Staged, WhatDoesNotFitIsForTheNext) {
  constexpr std::uint32_t kFit = kCapacity / 704;
  for (std::uint32_t i = 0; i < kFit + 2; ++i) {
    ASSERT_TRUE(channel_.post(support::random_bytes(700, i)));
  }
  for (std::uint32_t i = 0; i < kFit; ++i) EXPECT_EQ(take(i), Taken::added);
  EXPECT_EQ(take(kFit), Taken::full);
  EXPECT_EQ(batch_.count(), kFit);
  batch_.clear();
  EXPECT_EQ(take(kFit), Taken::added);
  EXPECT_EQ(batch_.sequence(0), kFit);
}

TEST_F(Staged, IsFullToItsLastByte) {
  static_assert(kCapacity == 8192);
  // 7 times 1008, 992, 144, and one more.
  const std::vector<std::uint32_t> lengths{1000, 1000, 1000, 1000, 1000, 1000, 1000, 992, 140, 0};
  for (const auto length : lengths) ASSERT_TRUE(channel_.post(support::random_bytes(length, 1)));
  for (std::uint32_t i = 0; i < 9; ++i) EXPECT_EQ(take(i), Taken::added) << i;
  EXPECT_EQ(batch_.bytes(), kCapacity);
  EXPECT_EQ(take(9), Taken::full);
  run();
  for (std::uint32_t i = 0; i < batch_.slots(); ++i) {
    EXPECT_TRUE(batch_.answer(channel_.memory(), i, staging_));
    EXPECT_TRUE(channel_.take());
  }
}

TEST_F(Staged, ALengthOverTheLimitIsRefusedAtOnce) {
  const kernels::ChannelView memory = channel_.memory();
  kernels::store_packet(memory.request(0).packets, {{kLongest + 1, 0, 0}, 1});
  EXPECT_EQ(take(0), Taken::refused);
  EXPECT_EQ(batch_.count(), 0U);
  const kernels::Packet header = kernels::load_packet(memory.response(0).packets);
  EXPECT_EQ(header.flag, 1U);
  EXPECT_EQ(header.data[1], static_cast<std::uint32_t>(ResponseStatus::bad_length));
}

TEST_F(Staged, WhatComesBackIsCheckedToo) {
  struct Bad {
    std::uint32_t length;
    ResponseStatus status;
  };
  const Bad cases[] = {{0, ResponseStatus::bad_length},
                       {49, ResponseStatus::ok},  // more than there is room for
                       {kLongest + 1, ResponseStatus::ok},
                       {0xffff'fff0, ResponseStatus::ok}};
  for (const Bad& bad : cases) {
    ASSERT_TRUE(channel_.post(support::random_bytes(10, 1)));
    batch_.clear();
    ASSERT_EQ(take(channel_.server.requester.slots().posted() - 1), Taken::added);
    run();
    processor_.responses(0)->entries[0] = {bad.length, bad.status};
    EXPECT_FALSE(batch_.answer(channel_.memory(), 0, staging_));
    EXPECT_EQ(channel_.take(), Bytes{});
    EXPECT_EQ(channel_.server.last_status, ResponseStatus::bad_length);
  }
}

TEST_F(Staged, HoldsSoManyAtMost) {
  test::ServedChannel deep(0, 2 * kernels::kMostInBatch, 16);
  test::HostProcessor processor(orders_, "echo", 16, 1, 1U << 20);
  StagedBatch batch(processor.requests(0), processor.responses(0), 1U << 20);
  while (deep.post(support::random_bytes(16, 1))) continue;
  for (std::uint32_t i = 0; i < kernels::kMostInBatch; ++i) {
    ASSERT_EQ(batch.take(deep.memory(), i, staging_), Taken::added);
  }
  EXPECT_EQ(batch.take(deep.memory(), kernels::kMostInBatch, staging_), Taken::full);
}

TEST_F(Staged, TakesAllMessagesOfASlotAndAnswersThemInIt) {
  for (const std::vector<std::uint32_t>& lengths :
       {std::vector<std::uint32_t>(64, 64), {0, 1}, {13, 0, 1000, 48, 49}, {20, 20, 20}}) {
    batch_.clear();
    const auto slot = channel_.server.requester.slots().posted();
    const auto due = post_batch(lengths);
    const auto alone = support::random_bytes(70, 5);
    ASSERT_TRUE(channel_.post(alone));
    ASSERT_EQ(take(slot), Taken::added);
    ASSERT_EQ(take(slot + 1), Taken::added);
    EXPECT_EQ(batch_.count(), lengths.size() + 1);
    ASSERT_EQ(batch_.slots(), 2U);
    run();
    for (std::uint32_t i = 0; i < 2; ++i) {
      EXPECT_EQ(batch_.sequence(i), slot + i);
      EXPECT_TRUE(batch_.answer(channel_.memory(), i, staging_));
    }
    for (const Bytes& response : due) {
      EXPECT_EQ(channel_.take(), response);
      EXPECT_EQ(channel_.server.last_status, ResponseStatus::ok);
    }
    EXPECT_EQ(channel_.take(), support::reversed(alone));
  }
}

// The largest one fits into an empty launch, and none is taken in part.
TEST_F(Staged, ASlotGoesIntoOneLaunchOrTheNext) {
  const auto first = post_batch(std::vector<std::uint32_t>(64, 66));
  const auto second = post_batch(std::vector<std::uint32_t>(64, 66));
  EXPECT_EQ(take(0), Taken::added);
  EXPECT_EQ(batch_.count(), 64U);
  const auto bytes = batch_.bytes();
  EXPECT_EQ(take(1), Taken::full);
  EXPECT_EQ(batch_.count(), 64U);
  EXPECT_EQ(batch_.bytes(), bytes);
  batch_.clear();
  EXPECT_EQ(take(1), Taken::added);
  run();
  // The former slot's is the server's next, which is answered by hand.
  EXPECT_EQ(batch_.sequence(0), 1U);
  EXPECT_TRUE(batch_.answer(channel_.memory(), 0, staging_));
  EXPECT_EQ(channel_.take(), std::nullopt);
  batch_.clear();
  ASSERT_EQ(take(0), Taken::added);
  run();
  EXPECT_TRUE(batch_.answer(channel_.memory(), 0, staging_));
  for (const auto* due : {&first, &second}) {
    for (const Bytes& response : *due) EXPECT_EQ(channel_.take(), response);
  }
}

TEST_F(Staged, ATableThatLiesIsRefusedAtOnce) {
  for (const std::size_t bytes : {20U, 400U}) {
    const auto slot = channel_.server.requester.slots().posted();
    channel_.forge(Bytes(bytes), static_cast<std::uint32_t>(bytes), 3);
    EXPECT_EQ(take(slot), Taken::refused);
    EXPECT_EQ(batch_.count(), 0U);
    EXPECT_EQ(batch_.slots(), 0U);
    ASSERT_TRUE(channel_.post({}));
    EXPECT_EQ(channel_.take(), Bytes{});
    EXPECT_EQ(channel_.server.last_status, ResponseStatus::bad_length);
  }
}

// A wrong answer to one message costs that message; an answer that does not fit its slot, all of
// it.
TEST_F(Staged, WhatComesBackForABatchIsCheckedToo) {
  auto due = post_batch({10, 20, 30});
  ASSERT_EQ(take(0), Taken::added);
  run();
  processor_.responses(0)->entries[1].length = 0xffff'fff0;
  EXPECT_FALSE(batch_.answer(channel_.memory(), 0, staging_));
  due[1].clear();
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(channel_.take(), due[i]);
    EXPECT_EQ(channel_.server.last_status,
              i == 1 ? ResponseStatus::bad_length : ResponseStatus::ok);
  }

  batch_.clear();
  // Fits as requests; no requester posts it, for its frames.
  Bytes content(std::size_t{64} * 78);
  for (std::size_t i = 0; i < 128; i += 2) content[i] = std::byte{76};
  channel_.forge(content, static_cast<std::uint32_t>(content.size()), 64);
  ASSERT_EQ(take(1), Taken::added);
  run();
  EXPECT_FALSE(batch_.answer(channel_.memory(), 0, staging_));
  ASSERT_TRUE(channel_.post({}));
  EXPECT_EQ(channel_.take(), Bytes{});
  EXPECT_EQ(channel_.server.last_status, ResponseStatus::bad_length);
}

TEST_F(Staged, HoldsSoManyOfBatchesAtMost) {
  test::HostProcessor processor(orders_, "echo", kLongest, 1, 1U << 20);
  StagedBatch batch(processor.requests(0), processor.responses(0), 1U << 20);
  for (std::uint32_t i = 0; i < 5; ++i) post_batch(std::vector<std::uint32_t>(60, 1));
  for (std::uint32_t i = 0; i < kernels::kMostInBatch / 60; ++i) {
    ASSERT_EQ(batch.take(channel_.memory(), i, staging_), Taken::added);
  }
  EXPECT_EQ(batch.take(channel_.memory(), kernels::kMostInBatch / 60, staging_), Taken::full);
}

TEST_F(Staged, ABatchFillsALaunchToItsLastMessage) {
  static_assert(kernels::kMostInBatch == 256);
  test::HostProcessor processor(orders_, "echo", kLongest, 1, 1U << 20);
  StagedBatch batch(processor.requests(0), processor.responses(0), 1U << 20);
  for (int i = 0; i < 3; ++i) post_batch(std::vector<std::uint32_t>(64, 1));
  post_batch(std::vector<std::uint32_t>(63, 1));
  post_batch({1, 1});
  for (std::uint32_t i = 0; i < 4; ++i) {
    ASSERT_EQ(batch.take(channel_.memory(), i, staging_), Taken::added);
  }
  EXPECT_EQ(batch.take(channel_.memory(), 4, staging_), Taken::full);
  const auto first = channel_.server.requester.slots().posted();
  for (int i = 0; i < 4; ++i) post_batch(std::vector<std::uint32_t>(64, 1));
  batch.clear();
  for (std::uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(batch.take(channel_.memory(), first + i, staging_), Taken::added);
  }
  EXPECT_EQ(batch.count(), kernels::kMostInBatch);
}

TEST_F(Staged, ABatchFillsALaunchToItsLastByte) {
  static_assert(kCapacity == 8192);
  // 7 times 1008 and 992, then what is left for the batch: its three times 48, or less.
  for (const std::uint32_t more : {0U, 1U}) {
    batch_.clear();
    const auto first = channel_.server.requester.slots().posted();
    for (int i = 0; i < 7; ++i) ASSERT_TRUE(channel_.post(support::random_bytes(1000, 1)));
    ASSERT_TRUE(channel_.post(support::random_bytes(992, 1)));
    EXPECT_TRUE(more == 0 || channel_.post(support::random_bytes(10, 1)));
    post_batch({10, 10, 10});
    for (std::uint32_t i = 0; i < 8 + more; ++i) ASSERT_EQ(take(first + i), Taken::added);
    EXPECT_EQ(take(first + 8 + more), more == 0 ? Taken::added : Taken::full);
    EXPECT_EQ(batch_.bytes(), kCapacity - 96 * more);
  }
}

TEST_F(Staged, AnswersFillASlotToItsLastByte) {
  constexpr std::uint32_t kLength = kernels::kMaxBatchContent / 64 - kernels::kFrameHeader;
  for (const std::uint32_t more : {0U, 1U}) {
    batch_.clear();
    const auto slot = channel_.server.requester.slots().posted();
    post_batch(std::vector<std::uint32_t>(64, 66));
    ASSERT_EQ(take(slot), Taken::added);
    run();
    for (std::uint32_t i = 0; i < 64; ++i) processor_.responses(0)->entries[i].length = kLength;
    processor_.responses(0)->entries[63].length += more;
    EXPECT_EQ(batch_.answer(channel_.memory(), 0, staging_), more == 0);
    for (std::uint32_t i = 0; i < 64; ++i) {
      const auto response = channel_.take();
      ASSERT_TRUE(response);
      EXPECT_EQ(response->size(), more == 0 ? kLength : 0U);
    }
  }
}

}  // namespace
}  // namespace offload::backend
