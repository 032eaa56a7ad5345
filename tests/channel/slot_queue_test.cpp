#include "channel/slot_queue.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <span>
#include <utility>
#include <vector>

#include "channel/channel_memory.hpp"
#include "core/error.hpp"
#include "kernels/serve.hpp"
#include "kernels/services.hpp"
#include "tests/channel/channel_fixture.hpp"
#include "tests/support/readable.hpp"
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
  EXPECT_FALSE(engine_.progress());
  for (std::uint64_t i = 0; i < 2; ++i) {
    EXPECT_EQ(kernels::load_packet(worker_.view().request(i).packets).data[1], 0U) << "no status";
    ASSERT_EQ(serve(i), Outcome::answered);
  }
  EXPECT_TRUE(engine_.progress());
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
  EXPECT_TRUE(engine_.progress());
  EXPECT_EQ(handler_.all.size(), 1U);
  EXPECT_EQ(queue_.engine(), nullptr);
}

TEST_F(SlotQueueTest, AGpuGetsTheSameBytes) {
  queue_.set_wakeup(Wakeup::polling);
  for (const std::size_t length : {100U, 373U, 10'000U}) {
    const Bytes message = random_bytes(length, 1);
    queue_.post({message, 0});
    ASSERT_EQ(serve(handler_.all.size()), Outcome::answered);
    EXPECT_TRUE(engine_.progress());
    EXPECT_EQ(handler_.all.back().bytes, message) << length;
  }
}

// A worker can write a slot that no request has.
TEST_F(SlotQueueTest, AResponseThatNobodyAwaitsIsNotTaken) {
  kernels::store_packet(worker_.view().response(0).packets,
                        {{0, 0, 0}, worker_.view().layout.flag_of(0)});
  EXPECT_FALSE(engine_.progress());
  EXPECT_EQ(handler_.all.size(), 0U);
}

TEST_F(SlotQueueTest, ARefusalHasNoBytes) {
  for (std::uint64_t i = 0; i < 2; ++i) {
    queue_.post({random_bytes(i == 0 ? 20 : 1000, 1), 0});
    ASSERT_EQ(serve(i), Outcome::answered);
    worker_.view().response(i).packets[0].data[1] = 1;
  }
  engine_.progress();
  ASSERT_EQ(handler_.all.size(), 2U);
  for (const auto& response : handler_.all) {
    EXPECT_EQ(response.content.status, kernels::ResponseStatus::bad_length);
    EXPECT_EQ(response.content.bytes.size(), 0U);
  }
}

TEST_F(SlotQueueTest, WithoutAWorkerATurnHasNoWork) {
  queue_.post({{}, 0});
  ASSERT_EQ(serve(0), Outcome::answered);
  queue_.set_wakeup(Wakeup::none);
  EXPECT_FALSE(engine_.progress());
  queue_.set_wakeup(Wakeup::engine);
  EXPECT_TRUE(engine_.progress());
  EXPECT_EQ(handler_.all.size(), 1U);
}

// Else a fast worker would keep the engine from its other work.
TEST_F(SlotQueueTest, ATurnTakesALimitedNumber) {
  ChannelMemory memory(0, 256, 100, -1);
  const ImportedChannel worker(memory.descriptor(), test::passed_fds(memory));
  SlotQueue queue(memory.endpoint(), handler_);
  queue.set_wakeup(Wakeup::polling);
  queue.open(engine_);
  for (std::uint64_t i = 0; i < 200; ++i) {
    queue.post({{}, 0});
    ASSERT_EQ(kernels::serve(kernels::SingleLane{}, worker.view(), i, kernels::Echo{}, staging_),
              Outcome::answered);
  }
  EXPECT_TRUE(engine_.progress());
  EXPECT_EQ(handler_.all.size(), 128U);
  EXPECT_TRUE(engine_.progress());
  EXPECT_EQ(handler_.all.size(), 200U);
}

TEST_F(SlotQueueTest, ARingWakesTheEngineThatArmed) {
  const int doorbell = memory_.endpoint().waiter.fd();
  for (std::uint64_t i = 0; i < 2; ++i) {
    queue_.post({{}, 0});
    EXPECT_EQ(engine_.arm(), core::Duration::max());
    EXPECT_FALSE(support::is_readable(engine_.fd(), 0));
    ASSERT_EQ(serve(i), Outcome::answered);
    worker_.ringer().ring();
    EXPECT_TRUE(support::is_readable(engine_.fd(), 0));
    engine_.disarm();
    while (engine_.progress()) continue;
    EXPECT_EQ(handler_.all.size(), i + 1);
    EXPECT_FALSE(support::is_readable(doorbell, 0)) << "it is drained";
  }
}

TEST_F(SlotQueueTest, ASleepThatEndsWithoutARingWithdrawsTheRequest) {
  std::uint32_t& armed = worker_.view().response_header().responses.armed;
  queue_.post({{}, 0});
  EXPECT_EQ(queue_.arm(), core::Duration::max());
  EXPECT_EQ(armed, 1U);
  queue_.disarm();
  EXPECT_EQ(armed, 0U);
  // A turn that did not arm leaves the worker's cache line alone.
  armed = 7;
  queue_.disarm();
  EXPECT_EQ(armed, 7U);
}

TEST_F(SlotQueueTest, WithoutArmingTheRequestStays) {
  std::uint32_t& armed = worker_.view().response_header().responses.armed;
  armed = 7;
  queue_.disarm();
  EXPECT_EQ(armed, 7U);
}

TEST_F(SlotQueueTest, ExpectsWhatItsWorkerIs) {
  using progress::Expecting;
  for (const bool has_request : {false, true}) {
    if (has_request) queue_.post({{}, 0});
    for (const auto& [wakeup, expected] : {std::pair{Wakeup::none, Expecting::nothing},
                                           std::pair{Wakeup::doorbell, Expecting::from_thread},
                                           std::pair{Wakeup::polling, Expecting::from_device},
                                           std::pair{Wakeup::engine, Expecting::nothing}}) {
      queue_.set_wakeup(wakeup);
      EXPECT_EQ(queue_.expecting(), has_request ? expected : Expecting::nothing)
          << static_cast<int>(wakeup);
    }
  }
}

TEST_F(SlotQueueTest, TakesNothingOnceClosed) {
  queue_.post({{}, 0});
  ASSERT_EQ(serve(0), Outcome::answered);
  queue_.close();
  EXPECT_FALSE(engine_.progress());
  EXPECT_EQ(handler_.all.size(), 0U);
}

TEST_F(SlotQueueTest, AnotherOneMayUseTheDoorbellAfterIt) {
  queue_.close();
  for (int i = 0; i < 2; ++i) {
    SlotQueue next(memory_.endpoint(), handler_);
    EXPECT_NO_THROW(next.open(engine_)) << i;
  }
  EXPECT_FALSE(engine_.progress());
}

// As many copies as there are slots are valid at once, wherever the ring of their bytes ends.
TEST(SlotQueueCopies, StayUntilTheirSlotsAreReleased) {
  constexpr std::uint32_t kMany = 64;
  struct Ignore {
    void on_content(const ContentResponse&) {}
  } ignore;
  ChannelMemory memory(0, kMany, 100, -1);
  std::vector<std::size_t> early(3 * kMany, kernels::kMaxBatchContent);
  std::vector<std::size_t> late = early;
  early[0] = 1100;
  late[kMany] = 1064;
  for (const auto& lengths : {early, late}) {
    SlotQueue queue(memory.endpoint(), ignore);
    std::deque<std::pair<std::span<std::byte>, Bytes>> valid;
    const std::byte* begin = nullptr;
    for (std::uint32_t i = 0; i < lengths.size(); ++i) {
      Bytes batch = random_bytes(lengths[i], i);
      const std::span<std::byte> copy = queue.copy(batch);
      if (i == 0) begin = copy.data();
      const auto at = static_cast<std::size_t>(copy.data() - begin);
      ASSERT_LE(at + copy.size(), (kMany + 1) * (kernels::kMaxBatchContent + kernels::kSlack));
      valid.emplace_back(copy, std::move(batch));
      if (valid.size() > kMany) valid.pop_front();
      for (const auto& [held, bytes] : valid) ASSERT_EQ(support::copy_of(held), bytes) << i;
    }
  }
}

TEST_F(SlotQueueTest, IsOpenedOnce) {
  EXPECT_EQ(support::thrown_by([&] { queue_.open(engine_); }).code(), core::ErrorCode::bad_state);
}

}  // namespace
}  // namespace offload::channel
