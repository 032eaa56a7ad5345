#include <gtest/gtest.h>

#include <optional>
#include <utility>
#include <vector>

#include "channel/channel_memory.hpp"
#include "core/error.hpp"
#include "tests/channel/channel_fixture.hpp"
#include "tests/support/readable.hpp"
#include "tests/support/thrown.hpp"

/// A requester that continues with another memory and another worker.
namespace offload::channel {
namespace {

using kernels::Outcome;
using support::Bytes;
using support::random_bytes;
using support::reversed;

constexpr std::uint32_t kSlots = 4;
constexpr std::uint32_t kLongest = 1000;

/// A worker's memory, and the worker, which serves when the test says so.
struct Worker {
  explicit Worker(std::uint64_t first = 0, std::uint32_t depth = kSlots)
      : memory(0, depth, kLongest, -1, first),
        channel(memory.descriptor(), test::passed_fds(memory)),
        next(channel.first_sequence()) {}

  /// Answers the next request, if it is there: reverses it, or else echoes it.
  template <class Service = kernels::Reverse>
  bool serve(Service service = {}) {
    kernels::Staging staging{};
    if (kernels::serve(kernels::SingleLane{}, channel.view(), next, service, staging) ==
        Outcome::nothing) {
      return false;
    }
    ++next;
    return true;
  }

  ChannelMemory memory;
  ImportedChannel channel;
  std::uint64_t next;
};

class RequesterMove : public testing::Test {
 protected:
  void post(std::size_t length) {
    messages_.push_back(random_bytes(length, static_cast<std::uint32_t>(messages_.size())));
    ASSERT_TRUE(server_.post(messages_.back(), &messages_));
  }
  void move_to(Worker& worker) {
    server_.requester.move_to(worker.memory.endpoint(), Wakeup::doorbell);
  }
  /// The worker answers all that is there; each answer is that to the next message.
  void expect_answers(Worker& worker, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_TRUE(worker.serve()) << i;
      EXPECT_EQ(server_.take(), reversed(messages_[answered_++]));
    }
    EXPECT_FALSE(worker.serve());
  }

  Worker first_;
  test::Server server_{first_.memory.endpoint()};
  std::vector<Bytes> messages_;
  std::size_t answered_ = 0;
};

TEST_F(RequesterMove, CarriesAllThatIsPendingOverInOrder) {
  for (const std::size_t length : {10U, 372U, 373U, 1000U}) post(length);
  Worker second;
  move_to(second);
  EXPECT_EQ(server_.requester.awaited(), 4U);
  expect_answers(second, 4);
}

TEST_F(RequesterMove, WhatWasAnsweredStaysAnswered) {
  for (const std::size_t length : {10U, 1000U, 20U, 900U}) post(length);
  ASSERT_TRUE(first_.serve());
  EXPECT_EQ(server_.take(), reversed(messages_[answered_++]));
  ASSERT_TRUE(first_.serve());  // its answer is not taken before the move
  Worker second;
  move_to(second);
  EXPECT_EQ(server_.requester.awaited(), 3U);
  expect_answers(second, 3);
}

// The slots of a message are others in a memory that begins elsewhere in the lap, and its flags.
TEST_F(RequesterMove, IntoAnotherPhaseOfSlotsAndLaps) {
  for (const std::uint64_t start :
       {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{6}, std::uint64_t{4} * 0xffff'0000 + 3}) {
    for (std::size_t done = 0; done < kSlots; ++done) {
      Worker one;
      test::Server server(one.memory.endpoint());
      for (std::size_t i = 0; i < done; ++i) {
        ASSERT_TRUE(server.post({}));
        ASSERT_TRUE(one.serve());
        ASSERT_TRUE(server.take().has_value());
      }
      std::vector<Bytes> messages;
      for (std::uint32_t i = 0; i < kSlots; ++i) {
        messages.push_back(random_bytes(i % 2 == 0 ? 30 : 600, i));
        ASSERT_TRUE(server.post(messages.back(), &messages));
      }
      Worker two(start);
      server.requester.move_to(two.memory.endpoint(), Wakeup::doorbell);
      EXPECT_TRUE(server.requester.full());
      for (std::uint32_t lap = 0; lap < 2 * kSlots; ++lap) {
        ASSERT_TRUE(two.serve()) << start << ", " << done;
        ASSERT_EQ(server.take(), reversed(messages[lap])) << start << ", " << done;
        messages.push_back(random_bytes(lap * 100, lap));
        ASSERT_TRUE(server.post(messages.back(), &messages));
      }
    }
  }
}

TEST_F(RequesterMove, WhatWasGivenUpIsLeftBehind) {
  for (const std::size_t length : {10U, 20U, 1000U, 30U}) post(length);
  std::size_t number = 0;
  server_.requester.for_each_pending([&](RequestTask& request) {
    if (number++ % 2 == 0) request.user_data = nullptr;
  });
  Worker second;
  move_to(second);
  EXPECT_EQ(server_.requester.awaited(), 2U);
  for (const std::size_t i : {1U, 3U}) {
    ASSERT_TRUE(second.serve());
    PostRecvTask* const task = server_.receive();
    ASSERT_NE(task, nullptr);
    EXPECT_EQ(task->user_data, &messages_);
    EXPECT_EQ(support::copy_of(task->payload()), reversed(messages_[i]));
    ASSERT_TRUE(server_.requester.release(*task).ok());
    server_.requester.flush();
  }
  EXPECT_FALSE(second.serve());
  // Their tasks are free again: a whole lap can be posted.
  for (std::uint32_t i = 0; i < kSlots; ++i) EXPECT_TRUE(server_.post({}));
}

// A worker was taken for dead, or hangs in its GPU, and continues later.
TEST_F(RequesterMove, WhatAFormerWorkerWritesLaterIsNeverSeen) {
  for (const std::size_t length : {10U, 1000U, 20U, 900U}) post(length);
  Worker second;
  move_to(second);
  while (first_.serve(kernels::Echo{})) continue;
  first_.channel.ringer().ring();
  EXPECT_FALSE(server_.take().has_value());
  expect_answers(second, 4);
  for (int lap = 0; lap < 3; ++lap) {
    for (const std::size_t length : {0U, 500U, 372U, 5U}) post(length);
    while (first_.serve(kernels::Echo{})) continue;
    expect_answers(second, 4);
  }
}

TEST_F(RequesterMove, WithoutAWorkerNoResponseIsTaken) {
  post(10);
  server_.requester.set_wakeup(Wakeup::none);
  ASSERT_TRUE(first_.serve(kernels::Echo{}));
  EXPECT_FALSE(server_.take().has_value());
  Worker second;
  move_to(second);
  expect_answers(second, 1);
}

TEST_F(RequesterMove, WakesTheNextWorkerIfThereIsSomethingForIt) {
  Worker idle;
  idle.channel.waiter().arm();
  move_to(idle);
  EXPECT_FALSE(support::is_readable(idle.channel.waiter().fd(), 0));
  post(10);
  Worker second;
  second.channel.waiter().arm();
  move_to(second);
  EXPECT_TRUE(support::is_readable(second.channel.waiter().fd(), 0));
}

TEST_F(RequesterMove, SleepsAtTheNextWorkersDoorbellAlone) {
  post(10);
  EXPECT_EQ(server_.requester.slots().arm(), core::Duration::max());
  Worker second;
  move_to(second);
  std::uint32_t& formers = first_.channel.view().response_header().responses.armed;
  EXPECT_EQ(formers, 0U);
  EXPECT_EQ(server_.engine.arm(), core::Duration::max());
  formers = 1;  // by the former worker itself
  first_.channel.ringer().ring();
  EXPECT_FALSE(support::is_readable(server_.engine.fd(), 0));
  second.channel.ringer().ring();
  EXPECT_TRUE(support::is_readable(server_.engine.fd(), 0));
  server_.engine.disarm();
}

TEST_F(RequesterMove, WaitsAtTheNextWorkersDoorbell) {
  post(10);
  Worker second;
  move_to(second);
  EXPECT_EQ(server_.requester.slots().arm(), core::Duration::max());
  EXPECT_EQ(second.channel.view().response_header().responses.armed, 1U);
  EXPECT_EQ(first_.channel.view().response_header().responses.armed, 0U);
  server_.requester.slots().disarm();
}

TEST_F(RequesterMove, ThereAndBackAndToManyOthers) {
  std::optional<Worker> holder;
  for (std::uint64_t i = 0; i < 50; ++i) {
    post(i % 3 == 0 ? 800 : i);
    post(i);
    Worker next(i * 3);
    move_to(next);
    expect_answers(next, 2);
    post(400);
    holder.emplace(i * 5);
    move_to(*holder);
    expect_answers(*holder, 1);
  }
}

TEST_F(RequesterMove, NotWhileAResponseIsHeld) {
  post(10);
  ASSERT_TRUE(first_.serve());
  PostRecvTask* const task = server_.receive();
  ASSERT_NE(task, nullptr);
  Worker second;
  ASSERT_TRUE(server_.requester.post(random_bytes(20, 1), &messages_).ok());
  EXPECT_EQ(support::thrown_by([&] { move_to(second); }).code(), core::ErrorCode::bad_state);
  EXPECT_EQ(server_.requester.slots().posted(), 1U) << "the second message is still gathered";
  ASSERT_TRUE(server_.requester.release(*task).ok());
  EXPECT_EQ(support::thrown_by([&] { move_to(second); }).code(), core::ErrorCode::bad_state)
      << "it is not flushed";
  server_.requester.flush();
  EXPECT_NO_THROW(move_to(second));
}

TEST_F(RequesterMove, NotToAChannelOfAnotherShape) {
  const auto code_for = [&](std::uint32_t depth, std::uint32_t length, std::uint32_t response) {
    ChannelMemory other(0, depth, length, -1, 0, response);
    return support::thrown_by([&] { server_.requester.move_to(other.endpoint(), Wakeup::polling); })
        .code();
  };
  const std::uint32_t response = kernels::kLongestDigest;
  EXPECT_EQ(code_for(2 * kSlots, kLongest, response), core::ErrorCode::invalid_value);
  EXPECT_EQ(code_for(kSlots, 2 * kLongest, response), core::ErrorCode::invalid_value);
  EXPECT_EQ(code_for(kSlots, kLongest, 2 * response), core::ErrorCode::invalid_value);
  post(10);
  expect_answers(first_, 1);
}

}  // namespace
}  // namespace offload::channel
