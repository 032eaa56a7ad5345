#include "backend/staged_batch.hpp"

#include <gtest/gtest.h>

#include "kernels/services.hpp"
#include "tests/backend/host_processor.hpp"
#include "tests/backend/served_channel.hpp"

/// Messages from their slots into a batch and back, without a thread.
namespace offload::backend {
namespace {

using kernels::Status;
using support::Bytes;
using Taken = StagedBatch::Taken;

class Staged : public testing::Test {
 protected:
  static constexpr std::uint32_t kLongest = 1000;
  static constexpr std::uint32_t kCapacity = 2048;

  void run() {
    EXPECT_TRUE(processor_.launch(0, batch_.bytes()));
    while (processor_.look(0) == BatchProcessor::State::running) continue;
  }
  Taken take(std::uint64_t sequence) { return batch_.take(channel_.memory(), sequence, staging_); }

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
    EXPECT_TRUE(batch_.answer(channel_.memory(), i));
    EXPECT_EQ(channel_.take(), support::reversed(messages[i])) << i;
  }
}

TEST_F(Staged, WhatDoesNotFitIsForTheNext) {
  for (std::uint32_t i = 0; i < 4; ++i) ASSERT_TRUE(channel_.post(support::random_bytes(700, i)));
  EXPECT_EQ(take(0), Taken::added);
  EXPECT_EQ(take(1), Taken::added);
  EXPECT_EQ(take(2), Taken::full);
  EXPECT_EQ(batch_.count(), 2U);
  batch_.clear();
  EXPECT_EQ(take(2), Taken::added);
  EXPECT_EQ(batch_.sequence(0), 2U);
}

TEST_F(Staged, IsFullToItsLastByte) {
  for (const std::uint32_t length : {1000U, 992U, 48U, 0U}) {
    ASSERT_TRUE(channel_.post(support::random_bytes(length, length)));
  }
  EXPECT_EQ(take(0), Taken::added);  // 1008
  EXPECT_EQ(take(1), Taken::added);  // 992
  EXPECT_EQ(take(2), Taken::added);  // 48
  EXPECT_EQ(batch_.bytes(), kCapacity);
  EXPECT_EQ(take(3), Taken::full);
  run();
  for (std::uint32_t i = 0; i < batch_.count(); ++i) {
    EXPECT_TRUE(batch_.answer(channel_.memory(), i));
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
  EXPECT_EQ(header.data[1], static_cast<std::uint32_t>(Status::bad_length));
}

TEST_F(Staged, WhatComesBackIsCheckedToo) {
  struct Bad {
    std::uint32_t length;
    Status status;
  };
  const Bad cases[] = {{0, Status::bad_length},
                       {49, Status::ok},  // more than there is room for
                       {kLongest + 1, Status::ok},
                       {0xffff'fff0, Status::ok}};
  for (const Bad& bad : cases) {
    ASSERT_TRUE(channel_.post(support::random_bytes(10, 1)));
    batch_.clear();
    ASSERT_EQ(take(channel_.server.requester.posted() - 1), Taken::added);
    run();
    processor_.responses(0)->entries[0] = {bad.length, bad.status};
    EXPECT_FALSE(batch_.answer(channel_.memory(), 0));
    EXPECT_EQ(channel_.take(), Bytes{});
    EXPECT_EQ(channel_.server.last_status, Status::bad_length);
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

}  // namespace
}  // namespace offload::backend
