#include "kernels/rdma/shared_queue.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "kernels/group.hpp"
#include "kernels/rdma_tasks/put.hpp"
#include "tests/kernels/rdma/model_card.hpp"
#include "tests/support/step_through.hpp"

/// One thread runs the steps of a shared queue, one after the other.
namespace offload::kernels::rdma {
namespace {

constexpr WaitLimit kNow{0};
constexpr SingleLane kOne;

class SharedQueueTest : public testing::Test {
 protected:
  static constexpr std::uint32_t kBlocks = 16;

  [[nodiscard]] std::uint32_t record() const { return big_endian(*queue_.queue.record); }
  [[nodiscard]] std::uint32_t rung() const {
    return big_endian(static_cast<std::uint32_t>(*queue_.queue.doorbell)) >> 8;
  }
  void write(std::uint64_t position) {
    SendWork work;
    work.flags = kSignaled;
    write_entry(queue_.queue.ring, position, queue_.queue.number, 1, work);
  }
  /// Completes the entry at `position`, as the card does.
  void complete(std::uint64_t position, Syndrome syndrome = Syndrome::none) {
    Completion completion{};
    completion.counter = static_cast<std::uint16_t>(position);
    if (syndrome != Syndrome::none) completion.kind = CqeKind::request_error;
    completion.syndrome = syndrome;
    const CompletionQueue& completions = queue_.queue.completions;
    completions.entries[written_ & ((std::uint64_t{1} << completions.log2) - 1)] =
        make_cqe(completion, written_, completions.log2);
    ++written_;
  }
  WorkResult take(std::uint32_t blocks, std::uint64_t& position) {
    return reserve(kOne, queue_, blocks, position);
  }

  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> memory_ = std::vector<Line>(test::ModelCard::bytes_for(kBlocks, 1) / 64);
  test::ModelCard card_;
  std::array<std::uint64_t, kBlocks> marks_{};
  SharedSendState state_{};
  SharedQueue queue_{card_.add(memory_.data(), kBlocks, 1).send, &state_, marks_.data()};
  std::uint64_t written_ = 0;
};

TEST_F(SharedQueueTest, ARangeBehindAGapIsPublishedWithTheGap) {
  std::uint64_t first = 99;
  std::uint64_t second = 99;
  std::uint64_t third = 99;
  ASSERT_EQ(take(2, first), WorkResult::done);
  ASSERT_EQ(take(3, second), WorkResult::done);
  ASSERT_EQ(take(1, third), WorkResult::done);
  EXPECT_EQ(first, 0U);
  EXPECT_EQ(second, 2U);
  EXPECT_EQ(third, 5U);
  EXPECT_EQ(next_position(kOne, queue_), 6U);
  publish(kOne, queue_, third, 6, 1);
  publish(kOne, queue_, second, 5, 1);
  EXPECT_EQ(record(), 0U);
  EXPECT_EQ(*queue_.queue.doorbell, 0U);
  publish(kOne, queue_, first, 2, 1);
  EXPECT_EQ(record(), 6U);
  EXPECT_EQ(rung(), 6U);
}

TEST_F(SharedQueueTest, APublisherLeavesItToTheOneThatRings) {
  std::uint64_t position = 0;
  ASSERT_EQ(take(1, position), WorkResult::done);
  state_.ringing = 1;
  publish(kOne, queue_, 0, 1, 1);
  EXPECT_EQ(record(), 0U);
  state_.ringing = 0;
  ASSERT_EQ(take(1, position), WorkResult::done);
  publish(kOne, queue_, 1, 2, 1);
  EXPECT_EQ(record(), 2U);
}

TEST_F(SharedQueueTest, CreditsAreExact) {
  std::uint64_t position = 0;
  ASSERT_EQ(take(kBlocks + 1, position), WorkResult::invalid);
  ASSERT_EQ(take(kBlocks - 1, position), WorkResult::done);
  EXPECT_EQ(take(2, position), WorkResult::pending);
  ASSERT_EQ(take(1, position), WorkResult::done);
  EXPECT_EQ(position, kBlocks - 1);
  EXPECT_EQ(take(1, position), WorkResult::pending);
  for (std::uint64_t i = 0; i < kBlocks; ++i) write(i);
  publish(kOne, queue_, 0, kBlocks - 1, 1);
  publish(kOne, queue_, kBlocks - 1, kBlocks, 1);
  complete(2);  // also completes the entries before it
  EXPECT_EQ(look(kOne, queue_), 1U);
  EXPECT_TRUE(is_completed(kOne, queue_, 2));
  EXPECT_FALSE(is_completed(kOne, queue_, 3));
  EXPECT_EQ(take(4, position), WorkResult::pending);
  ASSERT_EQ(take(3, position), WorkResult::done);
  EXPECT_EQ(position, kBlocks);
  EXPECT_EQ(take(1, position), WorkResult::pending);
}

TEST_F(SharedQueueTest, ALongEntryAtTheEndIsFreeAsAWhole) {
  std::uint64_t position = 0;
  ASSERT_EQ(take(4, position), WorkResult::done);
  publish(kOne, queue_, 0, 4, 3);  // the last begins at 1
  complete(1);
  ASSERT_EQ(look(kOne, queue_), 1U);
  EXPECT_EQ(state_.completed, 4U);
  EXPECT_EQ(state_.under_way, 0U);
}

TEST_F(SharedQueueTest, TheFirstErrorStays) {
  std::uint64_t position = 0;
  ASSERT_EQ(take(3, position), WorkResult::done);
  publish(kOne, queue_, 0, 3, 1);
  complete(0);
  complete(1, Syndrome::remote_access);
  complete(2, Syndrome::flushed);
  EXPECT_EQ(wait_for(kOne, queue_, 0, kNow), WorkResult::failed);
  EXPECT_EQ(error_of(kOne, queue_).syndrome(), Syndrome::remote_access);
  EXPECT_EQ(error_of(kOne, queue_).counter(), 1U);
  EXPECT_EQ(take(1, position), WorkResult::failed);
}

TEST_F(SharedQueueTest, ACompletionOfNothingIsAnError) {
  complete(0);
  EXPECT_EQ(look(kOne, queue_), 1U);
  EXPECT_EQ(error_of(kOne, queue_).syndrome(), Syndrome::bad_response);
  EXPECT_EQ(state_.completed, 0U);
}

/// Runs `work` on another thread; returns once it is done, without an order between that thread's
/// writes and the caller's next steps: so ThreadSanitizer sees whether the queue itself orders
/// them.
template <class Work>
void beside(const Work& work, std::jthread& thread) {
  static std::atomic<bool> done;
  done.store(false, std::memory_order_relaxed);
  thread = std::jthread([&work] {
    work();
    done.store(true, std::memory_order_relaxed);
  });
  while (!done.load(std::memory_order_relaxed)) std::this_thread::yield();
}

TEST_F(SharedQueueTest, AMarkOrdersWhatItsThreadWrote) {
  std::uint64_t position = 0;
  ASSERT_EQ(take(1, position), WorkResult::done);
  state_.ringing = 1;  // so that the bell orders nothing
  std::jthread thread;
  const auto post = [&] {
    write(0);
    publish(kOne, queue_, 0, 1, 1);
  };
  beside(post, thread);
  __atomic_store_n(&state_.ringing, 0, __ATOMIC_RELAXED);
  publish_filled(queue_);
  EXPECT_EQ(record(), 1U);
  EXPECT_EQ(big_endian(queue_.queue.ring.at(0, 0).words[1]), queue_.queue.number << 8 | 1);
}

TEST_F(SharedQueueTest, WhoLearnsThatAnEntryIsCompletedSeesWhatItDid) {
  std::uint64_t position = 0;
  ASSERT_EQ(take(1, position), WorkResult::done);
  publish(kOne, queue_, 0, 1, 1);
  std::uint64_t payload = 0;
  std::jthread thread;
  const auto look_for_all = [&] {
    payload = 7;
    complete(0);
    look(kOne, queue_);
  };
  beside(look_for_all, thread);
  ASSERT_TRUE(is_completed(kOne, queue_, 0));
  EXPECT_EQ(payload, 7U);
}

#if defined(OFFLOAD_CAN_STEP_THROUGH)

// Another thread publishes the range beside it after each instruction of a publish in turn: it may
// find the bell taken when this thread has looked at the marks, and both must be published then.
TEST_F(SharedQueueTest, NoPublishIsLostBesideAnother) {
  std::uint64_t begin = 0;
  for (const std::uint64_t own : {0U, 1U}) {  // the first of the two, or the second
    const auto publish_one = [&](std::uint64_t position) {
      publish(kOne, queue_, position, position + 1, 1);
    };
    bool is_beside = true;
    for (int at = 0; is_beside; ++at, begin += 2) {
      int steps = 0;
      is_beside = false;
      support::step_through([&] { publish_one(begin + own); },
                            [&] {
                              if (steps++ != at) return true;
                              publish_one(begin + 1 - own);
                              is_beside = true;
                              return false;
                            });
      if (!is_beside) publish_one(begin + 1 - own);  // the steps are over
      ASSERT_EQ(end_of(state_.published), begin + 2) << "after " << at << " instructions";
      ASSERT_EQ(record(), (begin + 2) % 65536);
    }
  }
}

#endif

// Positions that a card sees wrap at 65,536, and marks of an earlier lap are invalid.
TEST_F(SharedQueueTest, ManyLaps) {
  for (std::uint64_t i = 0; i < 70'000; ++i) {
    std::uint64_t position = 0;
    ASSERT_EQ(take(3, position), WorkResult::done);
    ASSERT_EQ(position, 3 * i);
    publish(kOne, queue_, position, position + 3, 1);
    ASSERT_EQ(record(), (position + 3) % 65536);
    complete(position + 2);
    ASSERT_EQ(look(kOne, queue_), 1U);
    ASSERT_TRUE(is_completed(kOne, queue_, position + 2));
  }
}

TEST(QueueError, HasWordsForEachSyndrome) {
  const Syndrome all[] = {Syndrome::local_length,           Syndrome::local_queue_operation,
                          Syndrome::local_protection,       Syndrome::flushed,
                          Syndrome::bad_response,           Syndrome::local_access,
                          Syndrome::remote_invalid_request, Syndrome::remote_access,
                          Syndrome::remote_operation,       Syndrome::transport_retries,
                          Syndrome::receiver_not_ready,     Syndrome::remote_aborted};
  for (const Syndrome syndrome : all) {
    EXPECT_STRNE(words_of(syndrome), words_of(static_cast<Syndrome>(0xff)));
    EXPECT_STRNE(words_of(syndrome), words_of(Syndrome::none));
  }
}

}  // namespace
}  // namespace offload::kernels::rdma
