#include <gtest/gtest.h>

#include <iterator>
#include <random>
#include <utility>
#include <vector>

#include "channel/channel_memory.hpp"
#include "tests/channel/requester_batch_fixture.hpp"

/// A requester whose messages share slots.
namespace offload::channel {
namespace {

using kernels::Outcome;
using kernels::ResponseStatus;
using support::Bytes;
using support::random_bytes;
using support::reversed;
using test::Ends;
using test::frame_of;

using RequesterBatch = test::RequesterBatch;

TEST_F(RequesterBatch, MessagesBeforeAFlushShareASlot) {
  for (const std::size_t length : {64U, 0U, 7U, 300U, 48U}) ASSERT_TRUE(post(length));
  EXPECT_EQ(ends_.serve(0), Outcome::nothing) << "not handed on yet";
  requester_.flush();
  EXPECT_EQ(requester_.awaited(), 5U);
  EXPECT_EQ(requester_.slots().awaited(), 1U);
  ASSERT_EQ(ends_.serve(0), Outcome::answered);
  for (int i = 0; i < 5; ++i) expect_next();
  EXPECT_EQ(ends_.serve(1), Outcome::nothing);
  EXPECT_EQ(ends_.server.receive(), nullptr);
}

TEST_F(RequesterBatch, OneMessageTravelsAsItIs) {
  ASSERT_TRUE(post(64));
  requester_.flush();
  EXPECT_EQ(kernels::load_packet(ends_.worker.view().request(0).packets).data[2], 0U);
  ASSERT_EQ(ends_.serve(0), Outcome::answered);
  PostRecvTask* const task = ends_.server.receive();
  ASSERT_NE(task, nullptr);
  EXPECT_TRUE(task->frame().empty());
}

TEST_F(RequesterBatch, AFullBatchIsHandedOnBeforeTheFlush) {
  for (int i = 0; i < 16; ++i) ASSERT_TRUE(post(300));
  EXPECT_EQ(ends_.serve(0), Outcome::nothing);
  ASSERT_TRUE(post(300));
  ASSERT_EQ(ends_.serve(0), Outcome::answered);
  EXPECT_EQ(ends_.serve(1), Outcome::nothing);
  requester_.flush();
  ASSERT_EQ(ends_.serve(1), Outcome::answered);
  for (int i = 0; i < 17; ++i) expect_next();
}

// Many warps answer slots at once: the fewer messages there are, the fewer share a slot.
TEST_F(RequesterBatch, AGpuGetsFewMessagesAloneMoreInPacketsAndManyPlain) {
  ChannelMemory memory(0, 128, 100, -1);
  test::Server server(memory.endpoint());
  server.requester.set_wakeup(Wakeup::polling);
  const Bytes message = random_bytes(64, 1);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(server.requester.post(message, test::Server::somebody()).ok());
  }
  server.requester.flush();
  const SlotQueue& slots = server.requester.slots();
  std::vector<std::uint32_t> counts;
  for (std::uint64_t slot = 0; slot < slots.posted(); ++slot) {
    const auto header = kernels::load_packet(memory.endpoint().view.request(slot).packets);
    counts.push_back(header.data[2]);
    EXPECT_EQ(header.data[0] > kernels::kMaxPacketPayload, header.data[2] > 4) << slot;
  }
  // 4 alone, then 4 in packets each, until 128 are under way; those of 5 KiB take 64.
  ASSERT_GT(counts.size(), 40U);
  EXPECT_EQ(std::vector(counts.begin(), counts.begin() + 5),
            (std::vector<std::uint32_t>{0, 0, 0, 0, 4}));
  EXPECT_EQ(counts[34], 4U);
  EXPECT_EQ(counts[35], 64U);
}

// Behind the four that are alone: the room of two messages is what fits in packets, or a byte more.
TEST_F(RequesterBatch, ABatchForAGpuFitsInPackets) {
  for (const std::size_t beyond : {0U, 1U}) {
    ChannelMemory memory(0, 32, 1000, -1);
    test::Server server(memory.endpoint());
    server.requester.set_wakeup(Wakeup::polling);
    for (int i = 0; i < 4; ++i) {
      ASSERT_TRUE(server.requester.post(random_bytes(64, 1), test::Server::somebody()).ok());
    }
    for (const std::size_t length : {std::size_t{170}, 178 + beyond}) {
      ASSERT_TRUE(server.requester.post(random_bytes(length, 1), test::Server::somebody()).ok());
    }
    server.requester.flush();
    EXPECT_EQ(server.requester.slots().posted(), 5 + beyond);
  }
}

TEST_F(RequesterBatch, AGpuGetsPlainBatchesWhereSlotsAreFew) {
  ChannelMemory memory(0, 8, 100, -1);
  test::Server server(memory.endpoint());
  server.requester.set_wakeup(Wakeup::polling);
  const Bytes message = random_bytes(64, 1);
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(server.requester.post(message, test::Server::somebody()).ok()) << i;
  }
  server.requester.flush();
  std::vector<std::uint32_t> counts;
  for (std::uint64_t slot = 0; slot < server.requester.slots().posted(); ++slot) {
    const auto header = kernels::load_packet(memory.endpoint().view.request(slot).packets);
    counts.push_back(header.data[2]);
  }
  EXPECT_EQ(counts, (std::vector<std::uint32_t>{0, 0, 0, 0, 64, 64, 64, 4}));
}

TEST_F(RequesterBatch, MessagesOfUpTo1024BytesShareASlot) {
  struct Case {
    std::vector<std::size_t> lengths;
    std::uint64_t before_the_flush;  ///< slots
    std::uint64_t after_it;
  };
  for (const Case& one : {Case{{10, 1024}, 0, 1}, Case{{10, 1025}, 2, 2}, Case{{1024, 10}, 0, 1},
                          Case{{1025, 10}, 1, 2}, Case{{1024, 1024}, 0, 1}}) {
    Ends ends(8, kLongest);
    Requester& requester = ends.server.requester;
    for (const std::size_t length : one.lengths) {
      ASSERT_TRUE(requester.post(random_bytes(length, 1), test::Server::somebody()).ok());
    }
    EXPECT_EQ(requester.slots().posted(), one.before_the_flush);
    requester.flush();
    EXPECT_EQ(requester.slots().posted(), one.after_it);
  }
}

TEST_F(RequesterBatch, OfTheLongestMessagesThatTheChannelAllows) {
  Ends ends(8, 100);
  for (const std::size_t length : {10U, 100U, 100U}) {
    ASSERT_TRUE(ends.server.requester.post(random_bytes(length, 1), test::Server::somebody()).ok());
  }
  EXPECT_EQ(ends.server.requester.post(random_bytes(101, 1), nullptr),
            core::Status(core::ErrorCode::invalid_value));
  ends.server.requester.flush();
  EXPECT_EQ(ends.server.requester.slots().posted(), 1U);
}

// Five messages have a room of exactly what a slot holds; with a byte more, the last is alone.
TEST_F(RequesterBatch, FillsASlotToTheLastByte) {
  for (const std::size_t beyond : {0U, 1U}) {
    Ends ends(8, kLongest);
    Requester& requester = ends.server.requester;
    for (std::size_t i = 0; i < 5; ++i) {
      const auto message = random_bytes(1012 + (i == 4 ? beyond : 0), 1);
      ASSERT_TRUE(requester.post(message, test::Server::somebody()).ok());
    }
    requester.flush();
    EXPECT_EQ(requester.slots().posted(), 1 + beyond);
  }
}

TEST_F(RequesterBatch, ARequestIsFoundUntilItsResponseIsReleased) {
  const std::uint32_t capacity = requester_.capacity();
  std::uint64_t sequence = 0;
  for (std::uint64_t slot = 0; sequence < 2 * capacity; ++slot) {
    for (std::size_t i = 0; i < 3; ++i) {
      const core::RunTime now{std::chrono::nanoseconds(1000 * sequence + i)};
      ASSERT_TRUE(requester_.post(random_bytes(i, 1), &messages_, now).ok());
      requester_.newest().waited_us = static_cast<std::uint32_t>(sequence + i);
    }
    requester_.flush();
    EXPECT_EQ(requester_.oldest().waited_us, sequence);
    ASSERT_EQ(ends_.serve(slot), Outcome::answered);
    for (std::size_t i = 0; i < 3; ++i) {
      PostRecvTask* const task = ends_.server.receive();
      ASSERT_NE(task, nullptr);
      const RequestTask& request = requester_.request(task->sequence());
      EXPECT_EQ(request.waited_us, sequence + i);
      EXPECT_EQ(request.length(), i);
      EXPECT_EQ(request.posted_at().time_since_epoch().count(), 1000 * sequence + i);
      ASSERT_TRUE(requester_.release(*task).ok());
    }
    requester_.flush();
    sequence += 3;
  }
}

TEST_F(RequesterBatch, ALongMessageGoesBehindThoseBeforeIt) {
  for (const std::size_t length : {10U, 20U, kLongest, 30U, 40U}) ASSERT_TRUE(post(length));
  requester_.flush();
  for (std::uint64_t slot = 0; slot < 3; ++slot) {
    ASSERT_EQ(ends_.serve(slot), Outcome::answered) << slot;
  }
  for (int i = 0; i < 5; ++i) expect_next();
}

TEST_F(RequesterBatch, AllLengthsInAnyCompany) {
  std::minstd_rand random(1);
  std::uint64_t served = 0;
  for (int round = 0; round < 300; ++round) {
    const auto count = random() % 100;
    const std::size_t longest = round % 3 == 0 ? 48 : round % 3 == 1 ? 300 : kLongest;
    for (std::size_t i = 0; i < count && post(random() % (longest + 1)); ++i) continue;
    requester_.flush();
    while (ends_.serve(served) == Outcome::answered) ++served;
    while (answered_ != messages_.size()) ASSERT_NO_FATAL_FAILURE(expect_next()) << round;
  }
}

TEST_F(RequesterBatch, TheFramesOfABatchLieBackToBack) {
  for (const std::size_t length : {64U, 0U, 13U, 1000U, 5U}) ASSERT_TRUE(post(length));
  requester_.flush();
  ASSERT_EQ(ends_.serve(0), Outcome::answered);
  const std::byte* next = nullptr;
  for (const Bytes& message : messages_) {
    PostRecvTask* const task = ends_.server.receive();
    ASSERT_NE(task, nullptr);
    EXPECT_EQ(support::copy_of(task->frame()), frame_of(reversed(message)));
    EXPECT_TRUE(next == nullptr || task->frame().data() == next);
    next = task->frame().data() + task->frame().size();
  }
}

// ---- Back-pressure

TEST_F(RequesterBatch, ManyShortMessagesFitAndThenItIsFull) {
  while (post(4)) {
    if (messages_.size() % 3 == 0) requester_.flush();
    ASSERT_LE(messages_.size(), requester_.capacity());
  }
  EXPECT_EQ(messages_.size(), 3U * 8) << "three a slot";
  EXPECT_TRUE(requester_.full());
  for (std::uint64_t slot = 0; slot < 8; ++slot) ASSERT_EQ(ends_.serve(slot), Outcome::answered);
  for (std::size_t i = 0; i < 24; ++i) expect_next();
  while (post(4)) continue;
  EXPECT_EQ(requester_.awaited(), requester_.capacity());
  EXPECT_TRUE(requester_.full());
}

TEST_F(RequesterBatch, ABatchThatIsOpenTakesNoMoreThanMayBeInFlight) {
  ASSERT_TRUE(post(4));
  requester_.flush();
  while (messages_.size() < requester_.capacity()) ASSERT_TRUE(post(4));
  EXPECT_TRUE(requester_.full());
  EXPECT_FALSE(post(4));
}

TEST_F(RequesterBatch, ABatchIsOpenForMessagesThatFitWhereNoSlotIsFree) {
  for (int i = 0; i < 7; ++i) {
    ASSERT_TRUE(post(10));
    requester_.flush();
  }
  ASSERT_TRUE(post(10));
  EXPECT_FALSE(requester_.full());
  EXPECT_TRUE(post(20));
  EXPECT_FALSE(post(kLongest)) << "which takes a slot of its own";
  EXPECT_TRUE(post(30));
  requester_.flush();
  EXPECT_TRUE(requester_.full());
}

TEST_F(RequesterBatch, ASlotIsFreeOnceAllItsResponsesAreReleased) {
  exchange_three();
  PostRecvTask* tasks[3];
  for (auto& task : tasks) task = ends_.server.receive();
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(requester_.release(*tasks[i]).ok());
  requester_.flush();
  EXPECT_EQ(requester_.slots().room(), 7U);
  ASSERT_TRUE(requester_.release(*tasks[2]).ok());
  EXPECT_EQ(requester_.slots().room(), 7U);
  requester_.flush();
  EXPECT_EQ(requester_.slots().room(), 8U);
}

TEST_F(RequesterBatch, ToReleaseAResponseReleasesThoseBeforeIt) {
  exchange_three();
  PostRecvTask* tasks[3];
  for (auto& task : tasks) task = ends_.server.receive();
  ASSERT_TRUE(requester_.release(*tasks[2]).ok());
  requester_.flush();
  EXPECT_EQ(requester_.slots().room(), 8U);
  for (auto* const task : tasks) {
    EXPECT_EQ(requester_.release(*task), core::Status(core::ErrorCode::bad_state));
  }
}

TEST_F(RequesterBatch, ResponsesThatAreHeldStayAsTheyAreForManyLaps) {
  for (int round = 0; round < 50; ++round) {
    std::vector<std::pair<PostRecvTask*, Bytes>> held;
    for (std::uint64_t slot = 0; slot < 8; ++slot) {
      for (int i = 0; i < 5; ++i) ASSERT_TRUE(post(static_cast<std::size_t>(round * 20 % 990 + i)));
      requester_.flush();
      ASSERT_EQ(ends_.serve(static_cast<std::uint64_t>(round) * 8 + slot), Outcome::answered);
      while (PostRecvTask* const task = ends_.server.receive()) {
        held.emplace_back(task, support::copy_of(task->payload()));
      }
      // Half of them go early, so that the others lie across the ring's end some time.
      if (slot == 3) {
        ASSERT_TRUE(requester_.release(*held[static_cast<std::size_t>(round) % 15].first).ok());
        requester_.flush();
      }
    }
    ASSERT_EQ(held.size(), 40U);
    for (const auto& [task, payload] : held) {
      ASSERT_EQ(payload, reversed(messages_[answered_++]));
      if (task->sequence() % 40 > static_cast<std::uint64_t>(round) % 15) {
        ASSERT_EQ(support::copy_of(task->payload()), payload);
      }
    }
    ASSERT_TRUE(requester_.release(*held.back().first).ok());
    requester_.flush();
  }
}

// ---- Given up, or carried over

TEST_F(RequesterBatch, OneOfABatchCanBeGivenUp) {
  int users[3] = {};
  for (int& user : users) ASSERT_TRUE(requester_.post(random_bytes(20, 1), &user).ok());
  requester_.flush();
  std::size_t number = 0;
  requester_.for_each_pending([&](RequestTask& request) {
    if (number++ == 1) request.user_data = nullptr;
  });
  ASSERT_EQ(ends_.serve(0), Outcome::answered);
  for (void* const user :
       {static_cast<void*>(users), static_cast<void*>(nullptr), static_cast<void*>(users + 2)}) {
    PostRecvTask* const task = ends_.server.receive();
    ASSERT_NE(task, nullptr);
    EXPECT_EQ(task->user_data, user);
  }
}

TEST_F(RequesterBatch, BatchesAreCarriedOverWhole) {
  for (const std::uint64_t start :
       {std::uint64_t{0}, std::uint64_t{5}, std::uint64_t{8} * 77 + 3}) {
    Ends first(8, kLongest);
    Requester& requester = first.server.requester;
    std::vector<Bytes> messages;
    std::vector<int> users(100);
    const auto post = [&](std::size_t length) {
      messages.push_back(random_bytes(length, static_cast<std::uint32_t>(messages.size())));
      ASSERT_TRUE(requester.post(messages.back(), &users[messages.size() - 1]).ok());
    };
    for (std::size_t batch = 0; batch < 4; ++batch) {
      for (std::size_t i = 0; i <= 6 * batch; ++i) post(10 * i);
      if (batch != 3) requester.flush();  // the last is not handed on yet
    }
    // The second batch is given up as a whole, of the third every other message.
    std::size_t number = 0;
    requester.for_each_pending([&](RequestTask& request) {
      if ((number >= 1 && number < 8) || (number >= 8 && number < 21 && number % 2 == 0)) {
        request.user_data = nullptr;
      }
      ++number;
    });
    ChannelMemory memory(0, 8, kLongest, -1, start);
    const ImportedChannel second(memory.descriptor(), test::passed_fds(memory));
    requester.move_to(memory.endpoint(), Wakeup::doorbell);
    EXPECT_EQ(requester.awaited(), 1U + 13 + 19);

    kernels::Staging staging{};
    for (std::uint64_t slot = start; slot < start + 3; ++slot) {
      ASSERT_EQ(
          kernels::serve(kernels::SingleLane{}, second.view(), slot, kernels::Reverse{}, staging),
          Outcome::answered);
    }
    for (std::size_t i = 0; i < messages.size(); ++i) {
      if (i >= 1 && i < 8) continue;
      PostRecvTask* const task = first.server.receive();
      ASSERT_NE(task, nullptr) << i;
      EXPECT_EQ(task->user_data, i >= 8 && i < 21 && i % 2 == 0 ? nullptr : &users[i]);
      EXPECT_EQ(support::copy_of(task->payload()), reversed(messages[i]));
    }
    EXPECT_EQ(first.server.receive(), nullptr);
  }
}

// Each combination of batches that are given up, behind one that was answered before the move.
TEST_F(RequesterBatch, ABatchIsLeftBehindIfAllItsMessagesAreGivenUp) {
  constexpr std::uint32_t kSizes[] = {3, 2, 1};
  for (std::uint32_t given_up = 0; given_up < 1U << std::size(kSizes); ++given_up) {
    SCOPED_TRACE(given_up);
    Ends first(8, kLongest);
    Requester& requester = first.server.requester;
    for (int i = 0; i < 4; ++i) {
      ASSERT_TRUE(requester.post(random_bytes(20, 1), test::Server::somebody()).ok());
    }
    requester.flush();
    ASSERT_EQ(first.serve(0), Outcome::answered);
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(first.server.take());

    std::uint32_t posted = 0;
    int gone = 0;
    std::vector<Bytes> kept;
    for (std::uint32_t batch = 0; batch < std::size(kSizes); ++batch) {
      const bool is_given_up = (given_up >> batch & 1U) != 0;
      for (std::uint32_t i = 0; i < kSizes[batch]; ++i) {
        const auto message = random_bytes(20, ++posted);
        void* const user = is_given_up ? &gone : test::Server::somebody();
        ASSERT_TRUE(requester.post(message, user).ok());
        if (!is_given_up) kept.push_back(message);
      }
      requester.flush();
    }
    requester.for_each_pending([&](RequestTask& request) {
      if (request.user_data == &gone) request.user_data = nullptr;
    });
    ChannelMemory memory(0, 8, kLongest, -1);
    const ImportedChannel second(memory.descriptor(), test::passed_fds(memory));
    requester.move_to(memory.endpoint(), Wakeup::doorbell);
    EXPECT_EQ(requester.awaited(), kept.size());

    kernels::Staging staging{};
    for (std::uint64_t slot = 0; kernels::serve(kernels::SingleLane{}, second.view(), slot,
                                                kernels::Reverse{}, staging) == Outcome::answered;
         ++slot) {
    }
    for (const Bytes& message : kept) EXPECT_EQ(first.server.take(), reversed(message));
    EXPECT_EQ(first.server.receive(), nullptr);
  }
}

}  // namespace
}  // namespace offload::channel
