#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <vector>

#include "channel/channel_memory.hpp"
#include "channel/packets.hpp"
#include "tests/channel/channel_fixture.hpp"

namespace offload::channel {
namespace {

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
  std::uint64_t sequence = 0;
  for (const std::size_t length : {0U, 1U, 12U, 13U, 255U, 371U, 372U, 373U, 999U, 1000U}) {
    const auto message = random_bytes(length, static_cast<std::uint32_t>(length));
    ASSERT_TRUE(ends.server.post(message));
    EXPECT_EQ(ends.server.receive(), nullptr);
    ASSERT_EQ(ends.serve(sequence++), Outcome::answered);
    EXPECT_EQ(ends.server.take(), reversed(message)) << length;
    EXPECT_EQ(ends.server.receive(), nullptr);
  }
}

TEST(Channel, TheLongestMessageThereCanBe) {
  Ends ends(1, kernels::kMaxMessageLength);
  const auto message = random_bytes(kernels::kMaxMessageLength, 1);
  ASSERT_TRUE(ends.server.post(message));
  ASSERT_EQ(ends.serve(0), Outcome::answered);
  EXPECT_EQ(ends.server.take(), reversed(message));
}

TEST(Channel, WhenAllTasksAreInFlightThereIsNone) {
  Ends ends(4, 64);
  EXPECT_EQ(ends.server.producer.capacity(), 4U);
  for (std::uint32_t i = 0; i < 4; ++i) ASSERT_TRUE(ends.server.post(random_bytes(i, i)));
  EXPECT_EQ(ends.server.sends.available(), 0U);
  EXPECT_EQ(ends.server.consumer.awaited(), 4U);
  ASSERT_EQ(ends.serve(0), Outcome::answered);
  // Received is not enough: its payload may still be read out of the slot.
  PostRecvTask* const task = ends.server.receive();
  ASSERT_NE(task, nullptr);
  EXPECT_EQ(ends.server.sends.available(), 0U);
  EXPECT_EQ(ends.server.consumer.awaited(), 3U);
  ASSERT_TRUE(ends.server.consumer.submit_unflushed(*task).ok());
  EXPECT_EQ(ends.server.sends.available(), 0U);
  ASSERT_TRUE(ends.server.consumer.flush().ok());
  EXPECT_EQ(ends.server.sends.available(), 1U);
}

TEST(Channel, MoreTasksThanSlotsHaveToWait) {
  Ends ends(2, 64);
  ends.server.producer.stop();
  ends.server.consumer.stop();
  progress::TaskPool<SendTask> more(ends.server.producer, 3,
                                    {[](SendTask&, void*) {}, [](SendTask&, void*) {}});
  ends.server.producer.start();
  ends.server.consumer.start();
  for (SendTask* task : {more.allocate(), more.allocate()}) {
    EXPECT_TRUE(ends.server.producer.submit(*task).ok());
  }
  SendTask* const third = more.allocate();
  EXPECT_EQ(ends.server.producer.submit(*third), core::Status(core::ErrorCode::again));
  ends.server.producer.stop();
}

TEST(Channel, AMessageOverTheLimitIsNotTaken) {
  Ends ends(2, 64);
  SendTask* const task = ends.server.sends.allocate();
  const auto message = random_bytes(65, 1);
  task->message = message;
  EXPECT_EQ(ends.server.producer.submit(*task), core::Status(core::ErrorCode::invalid_value));
  EXPECT_EQ(ends.server.consumer.awaited(), 0U);
  task->message = std::span(message).first(64);
  EXPECT_TRUE(ends.server.producer.submit(*task).ok());
}

TEST(Channel, MoreReceivesThanSlotsAreTooMany) {
  Ends ends(2, 64);
  ends.server.consumer.stop();
  EXPECT_EQ(ends.server.receives_failed, 2);
  progress::TaskPool<PostRecvTask> more(ends.server.consumer, 3,
                                        {[](PostRecvTask&, void*) {}, [](PostRecvTask&, void*) {}});
  ends.server.consumer.start();
  for (PostRecvTask* task : {more.allocate(), more.allocate()}) {
    EXPECT_TRUE(ends.server.consumer.submit(*task).ok());
  }
  EXPECT_EQ(ends.server.consumer.submit(*more.allocate()), core::Status(core::ErrorCode::full));
  ends.server.consumer.stop();
}

TEST(Channel, ReceivesArePostedAgainInOrder) {
  Ends ends(4, 64);
  for (std::uint64_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(ends.server.post({}));
    ASSERT_EQ(ends.serve(i), Outcome::answered);
  }
  PostRecvTask* const first = ends.server.receive();
  PostRecvTask* const second = ends.server.receive();
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(ends.server.consumer.submit(*second), core::Status(core::ErrorCode::invalid_value));
  EXPECT_TRUE(ends.server.consumer.submit(*first).ok());
  EXPECT_TRUE(ends.server.consumer.submit(*second).ok());
  EXPECT_EQ(ends.server.sends.available(), 4U);
}

TEST(Channel, ARequestThatIsGivenUpHasNoTaskWhenItsResponseComes) {
  Ends ends(4, 64);
  ASSERT_TRUE(ends.server.post({}));
  ends.server.producer.stop();
  EXPECT_EQ(ends.server.sends.available(), 4U);
  ASSERT_EQ(ends.serve(0), Outcome::answered);
  PostRecvTask* const task = ends.server.receive();
  ASSERT_NE(task, nullptr);
  EXPECT_EQ(task->request(), nullptr);
}

TEST(Channel, ResponsesComeInTheOrderOfTheirRequests) {
  Ends ends(4, 64);
  for (std::uint32_t i = 0; i < 4; ++i) ASSERT_TRUE(ends.server.post(random_bytes(20, i)));
  for (const std::uint64_t sequence : {3U, 1U, 2U}) {
    ASSERT_EQ(ends.serve(sequence), Outcome::answered);
    EXPECT_EQ(ends.server.receive(), nullptr);
  }
  ASSERT_EQ(ends.serve(0), Outcome::answered);
  for (std::uint32_t i = 0; i < 4; ++i)
    EXPECT_EQ(ends.server.take(), reversed(random_bytes(20, i)));
}

TEST(Channel, AResponseKnowsItsRequest) {
  Ends ends(4, 64);
  int users[6] = {};
  for (std::uint64_t i = 0; i < 6; ++i) {
    ASSERT_TRUE(ends.server.post({}, users + i));
    ASSERT_EQ(ends.serve(i), Outcome::answered);
    PostRecvTask* const task = ends.server.receive();
    ASSERT_NE(task, nullptr);
    EXPECT_EQ(task->request()->user_data, users + i);
    EXPECT_EQ(task->request()->sequence(), i);
    EXPECT_EQ(task->response_status(), Status::ok);
    ASSERT_TRUE(ends.server.consumer.submit(*task).ok());
  }
}

TEST(Channel, ManyLapsOfAllSizes) {
  for (const std::uint32_t depth : {1U, 2U, 8U}) {
    Ends ends(depth, 600);
    for (std::uint64_t i = 0; i < 5000; ++i) {
      const auto number = static_cast<std::uint32_t>(i);
      const auto message = random_bytes(number * 37 % 601, number);
      ASSERT_TRUE(ends.server.post(message));
      ASSERT_EQ(ends.serve(i), Outcome::answered);
      ASSERT_EQ(ends.server.take(), reversed(message)) << i;
    }
  }
}

TEST(Channel, PayloadsOfAllKindsInFlightAtOnce) {
  Ends ends(8, 5000);
  std::vector<Bytes> messages;
  for (std::uint32_t i = 0; i < 8; ++i) {
    messages.push_back(random_bytes(i % 2 == 0 ? 5000 - i : 30 * i, i));
    ASSERT_TRUE(ends.server.post(messages.back()));
  }
  for (std::uint64_t i = 0; i < 8; ++i) ASSERT_EQ(ends.serve(i), Outcome::answered);
  for (const Bytes& message : messages) EXPECT_EQ(ends.server.take(), reversed(message));
}

TEST(Channel, AResponseThatIsNotWholeIsNotReceived) {
  Ends ends(4, 1000);
  const auto message = random_bytes(100, 1);
  ASSERT_TRUE(ends.server.post(message));
  ASSERT_EQ(ends.serve(0), Outcome::answered);
  kernels::Packet* const packets = ends.worker.channel().response(0).packets;
  for (std::uint32_t v = 0; v < kernels::packets_for(100); ++v) {
    --packets[v].flag;
    EXPECT_EQ(ends.server.receive(), nullptr) << v;
    ++packets[v].flag;
  }
  EXPECT_EQ(ends.server.take(), reversed(message));
}

// The worker is a stranger too.
TEST(Channel, AResponseOverTheLimitHasNoPayload) {
  for (const std::uint32_t max_length : {48U, 300U, 1000U}) {
    for (const std::uint32_t length : {max_length + 1, 0x8000'0000U, 0xffff'ffffU}) {
      Ends ends(4, max_length);
      ASSERT_TRUE(ends.server.post({}));
      kernels::store_packet(ends.worker.channel().response(0).packets, {{length, 0, 0}, 1});
      PostRecvTask* const task = ends.server.receive();
      ASSERT_NE(task, nullptr);
      EXPECT_EQ(task->response_status(), Status::bad_length);
      EXPECT_TRUE(task->payload().empty());
    }
  }
}

TEST(Channel, ARefusalIsPassedOn) {
  Ends ends(4, 1000);
  ASSERT_TRUE(ends.server.post(random_bytes(20, 1)));
  kernels::store_packet(ends.worker.channel().request(0).packets, {{1001, 0, 0}, 1});
  ASSERT_EQ(ends.serve(0), Outcome::refused);
  PostRecvTask* const task = ends.server.receive();
  ASSERT_NE(task, nullptr);
  EXPECT_EQ(task->response_status(), Status::bad_length);
  EXPECT_TRUE(task->payload().empty());
}

TEST(Channel, HeaderSaysHowFarItGot) {
  Ends ends(4, 64);
  const kernels::ChannelHeader& header = ends.worker.channel().header();
  ASSERT_TRUE(ends.server.post({}));
  ASSERT_EQ(ends.serve(0), Outcome::answered);
  PostRecvTask* const task = ends.server.receive();
  ASSERT_NE(task, nullptr);
  ASSERT_TRUE(ends.server.consumer.flush().ok());
  EXPECT_EQ(header.consumed, 0U);  // a worker that comes now may not reuse what is being read
  ASSERT_TRUE(ends.server.consumer.submit_unflushed(*task).ok());
  EXPECT_EQ(header.consumed, 0U);
  ASSERT_TRUE(ends.server.consumer.flush().ok());
  EXPECT_EQ(header.consumed, 1U);
}

TEST(Channel, WhatAWorkerScribblesOverIsPutRight) {
  Ends ends(4, 64);
  for (std::uint64_t i = 0; i < 5; ++i) {
    ASSERT_TRUE(ends.server.post({}));
    ASSERT_EQ(ends.serve(i), Outcome::answered);
    ASSERT_TRUE(ends.server.take().has_value());
  }
  ends.worker.channel().header().consumed = 0xdead'beef;
  ends.channel.repair_header();
  EXPECT_EQ(ends.worker.channel().header().consumed, 5U);
}

TEST(Channel, FlushRingsAWorkerThatSleeps) {
  Ends ends(4, 64);
  Waiter waiter = ends.worker.waiter();
  ASSERT_TRUE(ends.server.post({}));
  ASSERT_TRUE(ends.server.producer.flush().ok());
  EXPECT_FALSE(is_readable(waiter.fd()));
  waiter.arm();
  ASSERT_TRUE(ends.server.post({}));
  EXPECT_FALSE(is_readable(waiter.fd()));
  ASSERT_TRUE(ends.server.producer.flush().ok());
  EXPECT_TRUE(is_readable(waiter.fd()));
}

TEST(Channel, AWorkerThatRingsWakesAServerThatArmed) {
  Ends ends(4, 64);
  Consumer& consumer = ends.server.consumer;
  consumer.set_peer(Peer::rings);
  ASSERT_TRUE(ends.server.post({}));
  ends.worker.ringer().ring();
  EXPECT_FALSE(is_readable(consumer.wake_fd()));
  EXPECT_EQ(consumer.arm(), core::Duration::max());
  ends.worker.ringer().ring();
  EXPECT_TRUE(is_readable(consumer.wake_fd()));
  consumer.disarm();
  EXPECT_EQ(ends.worker.channel().header().responses.armed, 0U);
}

TEST(Channel, ASilentWorkerIsLookedForSoon) {
  Ends ends(4, 64);
  Consumer& consumer = ends.server.consumer;
  consumer.set_peer(Peer::silent);
  EXPECT_EQ(consumer.arm(), core::Duration::max());  // nothing is due
  ASSERT_TRUE(ends.server.post({}));
  EXPECT_GT(consumer.arm(), core::Duration{});
  EXPECT_LE(consumer.arm(), std::chrono::milliseconds(1));
  EXPECT_EQ(ends.worker.channel().header().responses.armed, 0U);
}

TEST(Channel, WithoutAWorkerOrARequestThereIsNothingToWaitFor) {
  Ends ends(4, 64);
  Consumer& consumer = ends.server.consumer;
  EXPECT_EQ(consumer.peer(), Peer::absent);
  ASSERT_TRUE(ends.server.post({}));
  EXPECT_EQ(consumer.arm(), core::Duration::max());
  EXPECT_EQ(ends.worker.channel().header().responses.armed, 0U);
  ASSERT_EQ(ends.serve(0), Outcome::answered);
  ASSERT_TRUE(ends.server.take().has_value());
  consumer.set_peer(Peer::rings);
  EXPECT_EQ(consumer.arm(), core::Duration::max());
  EXPECT_EQ(ends.worker.channel().header().responses.armed, 0U);
}

/// A channel that has run for very long: no test would live to see it otherwise.
TEST(Channel, TurnsWrapAroundAfterFourBillionLaps) {
  const std::uint32_t depth = 2;
  const auto layout = kernels::make_layout(depth, 600);
  std::vector<kernels::Packet> memory(layout.bytes / sizeof(kernels::Packet),
                                      kernels::Packet{{}, 0xffff'fffd});
  const kernels::ChannelView channel{reinterpret_cast<std::uint8_t*>(memory.data()), layout};
  channel.header() = {};
  const core::Fd bell(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  const std::uint64_t start = std::uint64_t{0xffff'fffd} * depth;
  Cursors cursors{start, start, start};
  test::Server server({0,
                       channel,
                       &cursors,
                       {channel.header().requests, bell.get()},
                       {channel.header().responses, bell.get()}});
  kernels::Staging staging{};
  for (std::uint64_t sequence = start; sequence < start + 6 * depth; ++sequence) {
    const auto message =
        random_bytes(sequence % 3 == 0 ? 600 : 60, static_cast<std::uint32_t>(sequence));
    ASSERT_TRUE(server.post(message));
    ASSERT_FALSE(server.take().has_value());
    ASSERT_EQ(kernels::serve(kernels::SingleLane{}, channel, sequence, kernels::Reverse{}, staging),
              Outcome::answered);
    EXPECT_EQ(server.take(), reversed(message));
  }
}

}  // namespace
}  // namespace offload::channel
