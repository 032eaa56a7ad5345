#include "channel/slot_queue.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <vector>

#include "channel/channel_memory.hpp"
#include "core/error.hpp"
#include "kernels/serve.hpp"
#include "kernels/services.hpp"
#include "tests/channel/channel_fixture.hpp"
#include "tests/support/thrown.hpp"

/// Slots, whatever they carry. Doorbells, laps and moves are tested through the requester.
namespace offload::channel {
namespace {

using kernels::Outcome;
using support::Bytes;
using support::random_bytes;

class SlotQueueTest : public testing::Test {
 protected:
  struct Handler {
    struct Response {
      ContentResponse content;
      Bytes bytes;
    };
    void on_content(const ContentResponse& response) {
      all.push_back({response, support::copy_of(response.bytes)});
      if (queue_to_close != nullptr) queue_to_close->close();
    }
    std::deque<Response> all;
    SlotQueue* queue_to_close = nullptr;
  };

  SlotQueueTest() {
    queue_.set_wakeup(Wakeup::doorbell);
    queue_.open(engine_);
  }
  Outcome serve(std::uint64_t sequence) {
    return kernels::serve(kernels::SingleLane{}, worker_.view(), sequence, kernels::Echo{},
                          staging_);
  }

  progress::Engine engine_;
  ChannelMemory memory_{0, 4, 10'000, -1};
  ImportedChannel worker_{memory_.descriptor(), test::passed_fds(memory_)};
  Handler handler_;
  SlotQueue queue_{memory_.endpoint(), handler_};
  kernels::Staging staging_{};
};

TEST_F(SlotQueueTest, ContentsGoAndComeAsTheyLieInTheSlots) {
  // Two messages of 3 and 2 bytes, and what the worker makes of them.
  const Bytes batch{std::byte{3},  std::byte{0},  std::byte{2},  std::byte{0}, std::byte{11},
                    std::byte{12}, std::byte{13}, std::byte{21}, std::byte{22}};
  const Bytes message = random_bytes(9'999, 1);
  queue_.post({batch, 2});
  queue_.post({message, 0});
  queue_.flush();
  EXPECT_EQ(queue_.awaited(), 2U);
  EXPECT_EQ(queue_.room(), 2U);
  ASSERT_EQ(serve(0), Outcome::answered);
  ASSERT_EQ(serve(1), Outcome::answered);
  engine_.progress();
  ASSERT_EQ(handler_.all.size(), 2U);
  EXPECT_EQ(handler_.all[0].content.count, 2U);
  EXPECT_EQ(handler_.all[0].bytes.size(), 12U + 3 + 12 + 2);
  EXPECT_EQ(handler_.all[1].content.count, 0U);
  EXPECT_EQ(handler_.all[1].content.sequence, 1U);
  EXPECT_EQ(handler_.all[1].bytes, message);
}

TEST_F(SlotQueueTest, WhatFitsInPacketsIsACopy) {
  const auto* const begin = reinterpret_cast<const std::byte*>(memory_.endpoint().view.responses);
  const auto* const end = begin + memory_.endpoint().view.layout.response_bytes;
  const Bytes message = random_bytes(5'000, 1);
  const Bytes batch(10 + 1000);  // five lengths of 0, and one below
  Bytes lengths = batch;
  lengths[0] = std::byte{1000 & 0xff};
  lengths[1] = std::byte{1000 >> 8};
  queue_.post({message, 0});
  queue_.post({random_bytes(100, 2), 0});
  queue_.post({lengths, 5});
  for (std::uint64_t i = 0; i < 3; ++i) ASSERT_EQ(serve(i), Outcome::answered);
  engine_.progress();
  ASSERT_EQ(handler_.all.size(), 3U);
  const auto is_in_slot = [&](std::size_t i) {
    const auto* const at = handler_.all[i].content.bytes.data();
    return at >= begin && at < end;
  };
  EXPECT_TRUE(is_in_slot(0));
  EXPECT_FALSE(is_in_slot(1));
  EXPECT_TRUE(is_in_slot(2));
  const auto copy = queue_.copy(handler_.all[2].content.bytes);
  EXPECT_TRUE(copy.data() < begin || copy.data() >= end);
  EXPECT_EQ(support::copy_of(copy), handler_.all[2].bytes);
}

TEST_F(SlotQueueTest, ABatchIsNoLongerThanItsRoom) {
  const std::vector<std::uint32_t> lengths{kernels::kMaxBatchContent, kernels::kMaxBatchContent + 1,
                                           10'000};  // the last one is right for a message
  for (std::uint64_t i = 0; i < lengths.size(); ++i) {
    queue_.post({random_bytes(20, 1), 1});
    kernels::store_packet(worker_.view().response(i).packets, {{lengths[i], 0, 1}, 1});
  }
  engine_.progress();
  ASSERT_EQ(handler_.all.size(), lengths.size());
  EXPECT_EQ(handler_.all[0].content.status, kernels::ResponseStatus::ok);
  EXPECT_EQ(handler_.all[0].content.bytes.size(), lengths[0]);
  for (std::size_t i = 1; i < lengths.size(); ++i) {
    EXPECT_EQ(handler_.all[i].content.status, kernels::ResponseStatus::bad_length) << lengths[i];
    EXPECT_EQ(handler_.all[i].content.bytes.size(), 0U) << lengths[i];
  }
}

TEST_F(SlotQueueTest, AHandlerMayCloseIt) {
  handler_.queue_to_close = &queue_;
  for (int i = 0; i < 3; ++i) queue_.post({{}, 0});
  for (std::uint64_t i = 0; i < 3; ++i) ASSERT_EQ(serve(i), Outcome::answered);
  engine_.progress();
  EXPECT_EQ(handler_.all.size(), 1U);
  EXPECT_EQ(queue_.engine(), nullptr);
}

TEST_F(SlotQueueTest, IsOpenedOnce) {
  EXPECT_EQ(support::thrown_by([&] { queue_.open(engine_); }).code(), core::ErrorCode::bad_state);
}

}  // namespace
}  // namespace offload::channel
