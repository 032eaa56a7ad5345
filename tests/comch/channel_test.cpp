#include "comch/channel.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <vector>

#include "comch/packed.hpp"
#include "tests/comch/channel_fixture.hpp"

namespace offload::comch {
namespace {

using kernels::kMaxPacked;
using kernels::kSlack;
using kernels::Outcome;
using kernels::Status;
using support::Bytes;
using support::random_bytes;
using support::reversed;
using test::Ends;

bool is_readable(int fd) {
  pollfd watched{fd, POLLIN, 0};
  return ::poll(&watched, 1, 0) == 1;
}

TEST(Channel, ARequestGoesOutAndItsResponseComesBack) {
  Ends ends(4, 1000);
  for (const std::size_t length : {0U, 1U, 12U, 13U, 255U, 371U, 372U, 373U, 999U, 1000U}) {
    const auto sequence = ends.server.cursors().posted;
    const auto message = random_bytes(length, static_cast<std::uint32_t>(length));
    ASSERT_TRUE(ends.post(message));
    EXPECT_EQ(ends.receive(), nullptr);
    ASSERT_EQ(ends.serve(sequence), Outcome::answered);
    EXPECT_EQ(ends.take(), reversed(message)) << length;
    EXPECT_EQ(ends.receive(), nullptr);
  }
}

TEST(Channel, TheLongestMessageThereCanBe) {
  Ends ends(1, kernels::kMaxMessageLength);
  const auto message = random_bytes(kernels::kMaxMessageLength, 1);
  ASSERT_TRUE(ends.post(message));
  ASSERT_EQ(ends.serve(0), Outcome::answered);
  EXPECT_EQ(ends.take(), reversed(message));
}

TEST(Channel, WhenAllTasksAreInFlightThereIsNone) {
  Ends ends(4, 64);
  EXPECT_EQ(ends.server.producer().capacity(), 4U);
  for (std::uint32_t i = 0; i < 4; ++i) {
    EXPECT_FALSE(ends.server.producer().full());
    ASSERT_TRUE(ends.post(random_bytes(i, i)));
  }
  EXPECT_TRUE(ends.server.producer().full());
  EXPECT_EQ(ends.server.producer().allocate(), nullptr);
  EXPECT_EQ(ends.server.consumer().in_flight(), 4U);
  ASSERT_EQ(ends.serve(0), Outcome::answered);
  // Received is not enough: its payload may still be read out of the slot.
  PostRecvTask* const task = ends.receive();
  ASSERT_NE(task, nullptr);
  EXPECT_EQ(ends.server.producer().allocate(), nullptr);
  EXPECT_EQ(ends.server.consumer().in_flight(), 3U);
  ends.server.consumer().repost(*task);
  EXPECT_NE(ends.server.producer().allocate(), nullptr);
}

TEST(Channel, AnAllocatedTaskIsTheSameUntilSubmitted) {
  Ends ends(4, 64);
  SendTask* const task = ends.server.producer().allocate();
  EXPECT_EQ(ends.server.producer().allocate(), task);
  ends.server.producer().submit(*task, {});
  EXPECT_NE(ends.server.producer().allocate(), task);
}

TEST(Channel, ResponsesComeInTheOrderOfTheirRequests) {
  Ends ends(4, 64);
  for (std::uint32_t i = 0; i < 4; ++i) ASSERT_TRUE(ends.post(random_bytes(20, i)));
  for (const std::uint64_t sequence : {3U, 1U, 2U}) {
    ASSERT_EQ(ends.serve(sequence), Outcome::answered);
    EXPECT_EQ(ends.receive(), nullptr);
  }
  ASSERT_EQ(ends.serve(0), Outcome::answered);
  for (std::uint32_t i = 0; i < 4; ++i) EXPECT_EQ(ends.take(), reversed(random_bytes(20, i)));
}

TEST(Channel, AResponseKnowsItsRequest) {
  Ends ends(4, 64);
  int users[6] = {};
  for (std::uint64_t i = 0; i < 6; ++i) {
    ASSERT_TRUE(ends.post({}, users + i));
    ASSERT_EQ(ends.serve(i), Outcome::answered);
    PostRecvTask* const task = ends.receive();
    ASSERT_NE(task, nullptr);
    EXPECT_EQ(task->request->user_data, users + i);
    EXPECT_EQ(task->request->sequence, i);
    EXPECT_EQ(task->status, Status::ok);
    ends.server.consumer().repost(*task);
  }
}

TEST(Channel, ManyLapsOfAllSizes) {
  for (const std::uint32_t depth : {1U, 2U, 8U}) {
    Ends ends(depth, 600);
    for (std::uint64_t i = 0; i < 5000; ++i) {
      const auto number = static_cast<std::uint32_t>(i);
      const auto message = random_bytes(number * 37 % 601, number);
      ASSERT_TRUE(ends.post(message));
      ASSERT_EQ(ends.serve(i), Outcome::answered);
      ASSERT_EQ(ends.take(), reversed(message)) << i;
    }
  }
}

TEST(Channel, PayloadsOfAllKindsInFlightAtOnce) {
  Ends ends(8, 5000);
  std::vector<Bytes> messages;
  for (std::uint32_t i = 0; i < 8; ++i) {
    messages.push_back(random_bytes(i % 2 == 0 ? 5000 - i : 30 * i, i));
    ASSERT_TRUE(ends.post(messages.back()));
  }
  for (std::uint64_t i = 0; i < 8; ++i) ASSERT_EQ(ends.serve(i), Outcome::answered);
  for (const Bytes& message : messages) EXPECT_EQ(ends.take(), reversed(message));
}

TEST(Channel, AResponseThatIsNotWholeIsNotReceived) {
  Ends ends(4, 1000);
  const auto message = random_bytes(100, 1);
  ASSERT_TRUE(ends.post(message));
  ASSERT_EQ(ends.serve(0), Outcome::answered);
  kernels::Vector* const vectors = ends.worker.channel().response(0).vectors;
  for (std::uint32_t v = 0; v < kernels::vectors_for(100); ++v) {
    --vectors[v].turn;
    EXPECT_EQ(ends.receive(), nullptr) << v;
    ++vectors[v].turn;
  }
  EXPECT_EQ(ends.take(), reversed(message));
}

// The worker is a stranger too.
TEST(Channel, AResponseOverTheLimitHasNoPayload) {
  for (const std::uint32_t max_length : {48U, 300U, 1000U}) {
    for (const std::uint32_t length : {max_length + 1, 0x8000'0000U, 0xffff'ffffU}) {
      Ends ends(4, max_length);
      ASSERT_TRUE(ends.post({}));
      kernels::store_vector(ends.worker.channel().response(0).vectors, {{length, 0, 0}, 1});
      PostRecvTask* const task = ends.receive();
      ASSERT_NE(task, nullptr);
      EXPECT_EQ(task->status, Status::bad_length);
      EXPECT_TRUE(task->payload.empty());
    }
  }
}

TEST(Channel, ARefusalIsPassedOn) {
  Ends ends(4, 1000);
  ASSERT_TRUE(ends.post(random_bytes(20, 1)));
  kernels::store_vector(ends.worker.channel().request(0).vectors, {{1001, 0, 0}, 1});
  ASSERT_EQ(ends.serve(0), Outcome::refused);
  PostRecvTask* const task = ends.receive();
  ASSERT_NE(task, nullptr);
  EXPECT_EQ(task->status, Status::bad_length);
  EXPECT_TRUE(task->payload.empty());
}

TEST(Channel, HeaderSaysHowFarItGot) {
  Ends ends(4, 64);
  const kernels::ChannelHeader& header = ends.worker.channel().header();
  ASSERT_TRUE(ends.post({}));
  ASSERT_EQ(ends.serve(0), Outcome::answered);
  PostRecvTask* const task = ends.receive();
  ASSERT_NE(task, nullptr);
  ends.server.consumer().flush();
  EXPECT_EQ(header.consumed, 0U);  // a worker that comes now may not reuse what is being read
  ends.server.consumer().repost(*task);
  ends.server.consumer().flush();
  EXPECT_EQ(header.consumed, 1U);
  EXPECT_EQ(ends.server.consumer().consumed(), 1U);
}

TEST(Channel, WhatAWorkerScribblesOverIsPutRight) {
  Ends ends(4, 64);
  for (std::uint64_t i = 0; i < 5; ++i) {
    ASSERT_TRUE(ends.post({}));
    ASSERT_EQ(ends.serve(i), Outcome::answered);
    ASSERT_TRUE(ends.take().has_value());
  }
  ends.server.consumer().flush();
  ends.worker.channel().header().consumed = 0xdead'beef;
  EXPECT_EQ(ends.server.consumer().consumed(), 5U);
  ends.server.repair_header();
  EXPECT_EQ(ends.worker.channel().header().consumed, 5U);
}

TEST(Channel, FlushRingsAWorkerThatSleeps) {
  Ends ends(4, 64);
  progress::Waiter waiter = ends.worker.waiter();
  ASSERT_TRUE(ends.post({}));
  ends.server.producer().flush();
  EXPECT_FALSE(is_readable(waiter.fd()));
  waiter.arm();
  ASSERT_TRUE(ends.post({}));
  EXPECT_FALSE(is_readable(waiter.fd()));
  ends.server.producer().flush();
  EXPECT_TRUE(is_readable(waiter.fd()));
}

TEST(Channel, AWorkerThatRingsWakesAServerThatArmed) {
  Ends ends(4, 64);
  Consumer& consumer = ends.server.consumer();
  consumer.set_peer(Peer::rings);
  ASSERT_TRUE(ends.post({}));
  ends.worker.ringer().ring();
  EXPECT_FALSE(is_readable(consumer.fd()));
  EXPECT_EQ(consumer.arm(), core::Duration::max());
  ends.worker.ringer().ring();
  EXPECT_TRUE(is_readable(consumer.fd()));
  consumer.disarm();
  EXPECT_EQ(ends.worker.channel().header().responses.armed, 0U);
}

TEST(Channel, ASilentWorkerIsLookedForSoon) {
  Ends ends(4, 64);
  Consumer& consumer = ends.server.consumer();
  consumer.set_peer(Peer::silent);
  EXPECT_EQ(consumer.arm(), core::Duration::max());  // nothing is due
  ASSERT_TRUE(ends.post({}));
  EXPECT_GT(consumer.arm(), core::Duration{});
  EXPECT_LE(consumer.arm(), std::chrono::milliseconds(1));
  EXPECT_EQ(ends.worker.channel().header().responses.armed, 0U);
}

TEST(Channel, WithoutAWorkerOrARequestThereIsNothingToWaitFor) {
  Ends ends(4, 64);
  Consumer& consumer = ends.server.consumer();
  EXPECT_EQ(consumer.peer(), Peer::absent);
  ASSERT_TRUE(ends.post({}));
  EXPECT_EQ(consumer.arm(), core::Duration::max());
  EXPECT_EQ(ends.worker.channel().header().responses.armed, 0U);
  ASSERT_EQ(ends.serve(0), Outcome::answered);
  ASSERT_TRUE(ends.take().has_value());
  consumer.set_peer(Peer::rings);
  EXPECT_EQ(consumer.arm(), core::Duration::max());
  EXPECT_EQ(ends.worker.channel().header().responses.armed, 0U);
}

/// A channel that has run for very long: no test would live to see it otherwise.
TEST(Channel, TurnsWrapAroundAfterFourBillionLaps) {
  constexpr std::uint32_t kDepth = 2;
  const auto layout = kernels::make_layout(kDepth, 600);
  std::vector<kernels::Vector> memory(layout.bytes / sizeof(kernels::Vector),
                                      kernels::Vector{{}, 0xffff'fffd});
  const kernels::Channel channel{reinterpret_cast<std::uint8_t*>(memory.data()), layout};
  channel.header() = {};
  const core::Fd bell(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  const std::uint64_t start = std::uint64_t{0xffff'fffd} * kDepth;
  Cursors cursors{start, start, start};
  Producer producer(channel, cursors, {channel.header().requests, bell.get()});
  Consumer consumer(channel, cursors, producer, {channel.header().responses, bell.get()});
  kernels::Staging staging{};
  std::array<std::byte, kMaxPacked + kSlack> packed{};
  for (std::uint64_t sequence = start; sequence < start + 6 * kDepth; ++sequence) {
    const auto message =
        random_bytes(sequence % 3 == 0 ? 600 : 60, static_cast<std::uint32_t>(sequence));
    SendTask* const task = producer.allocate();
    ASSERT_NE(task, nullptr);
    producer.submit(*task, message);
    ASSERT_EQ(consumer.receive(packed.data()), nullptr);
    ASSERT_EQ(kernels::serve(kernels::SingleLane{}, channel, sequence, kernels::Reverse{}, staging),
              Outcome::answered);
    PostRecvTask* const response = consumer.receive(packed.data());
    ASSERT_NE(response, nullptr);
    EXPECT_EQ(support::copy_of(response->payload), reversed(message));
    consumer.repost(*response);
  }
}

}  // namespace
}  // namespace offload::comch
