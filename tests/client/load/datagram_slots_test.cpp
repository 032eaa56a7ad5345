#include "tests/client/load/datagram_fixture.hpp"

/// A DatagramFlow without its load thread: what it does with each event.
namespace offload::client {
namespace {

/// One request in flight, which is sent again once; errors are counted.
LoadPlan plan_with_a_retry(std::uint64_t count) {
  LoadPlan plan = counting_plan(count, 1, kBound);
  plan.retries = 1;
  return plan;
}

TEST(DatagramFlow, EachRequestOfASlotHasAllRetries) {
  const auto pool = hello_pool();
  FakeDatagramWorker worker;
  DrivenDatagrams driven(plan_with_a_retry(3), pool, worker);
  driven.flow->start();
  for (std::uint64_t i = 1; i <= 3; ++i) {
    const Asked asked = worker.read();
    driven.flow->on_deadline(driven.flow->deadline());
    ASSERT_EQ(driven.interval->sent_again, i);
    EXPECT_EQ(worker.read().sequence, asked.sequence);
    worker.answer(asked);
    driven.run_until([&] { return driven.interval->valid == i; });
  }
  EXPECT_EQ(driven.interval->lost, 0U);
  EXPECT_TRUE(driven.flow->over());
}

TEST(DatagramFlow, ARequestThatCannotBeSentIsAnError) {
  const auto pool = random_pool(66'000, Service::reverse);  // longer than a datagram
  const FakeDatagramWorker worker;
  DrivenDatagrams stopped(plan_of(1, 1), pool, worker);
  stopped.flow->start();
  EXPECT_TRUE(stopped.flow->over());
  EXPECT_EQ(stopped.share.fault, "flow, request 1: sending failed: Message too long");

  DrivenDatagrams counting(counting_plan(1, 1, kBound), pool, worker);
  counting.flow->start();
  EXPECT_FALSE(counting.flow->over());
  counting.flow->on_deadline(counting.flow->deadline());
  EXPECT_TRUE(counting.flow->over());
  EXPECT_EQ(counting.interval->lost, 1U);
  EXPECT_TRUE(counting.share.fault.ends_with(", sending failed (Message too long)"))
      << counting.share.fault;
}

// Otherwise a request could be lost although its answer is there.
TEST(DatagramFlow, AnErrorHidesNoAnswerBehindIt) {
  const auto pool = hello_pool();
  FakeDatagramWorker worker;
  DrivenDatagrams driven(plan_with_a_retry(1), pool, worker);
  driven.flow->start();
  const Asked asked = worker.read();
  worker.refuse_others();
  driven.flow->on_deadline(driven.flow->deadline());
  ASSERT_TRUE(driven.has(POLLERR));
  worker.answer(asked);
  ASSERT_TRUE(driven.has(POLLIN));
  EXPECT_TRUE(driven.share.engine.run_once(core::Clock::now() + kBound));
  EXPECT_EQ(driven.interval->valid, 1U);
}

TEST(DatagramFlow, AnOpenLoopsWindowIsRoomForAsManyAsWereAnswered) {
  const auto pool = hello_pool();
  FakeDatagramWorker worker;
  DrivenDatagrams driven(open_plan(1000, 0, 2), pool, worker);
  driven.open();
  driven.flow->start();
  ASSERT_EQ(driven.share.with_room_count, 1U);
  driven.flow->send_due(5);
  EXPECT_EQ(driven.interval->sent, 2U);
  EXPECT_EQ(driven.share.with_room_count, 0U);
  worker.answer(worker.read());
  driven.run_until([&] { return driven.interval->valid == 1; });
  EXPECT_EQ(driven.share.with_room_count, 1U);
  driven.flow->send_due(5);
  EXPECT_EQ(driven.interval->sent, 3U);
  EXPECT_EQ(driven.share.with_room_count, 0U);
}

TEST(DatagramFlow, AfterTheEndOfSendingWhatIsInFlightIsAwaited) {
  const auto pool = hello_pool();
  FakeDatagramWorker worker;
  DrivenDatagrams idle(open_plan(1000, 0, 4), pool, worker);
  idle.open();
  idle.flow->start();
  idle.flow->stop_sending();
  EXPECT_TRUE(idle.flow->over());
  EXPECT_EQ(idle.share.with_room_count, 0U);

  DrivenDatagrams waiting(open_plan(1000, 0, 4), pool, worker);
  waiting.open();
  waiting.flow->start();
  waiting.flow->send_due(1);
  EXPECT_EQ(waiting.share.with_room_count, 1U);
  waiting.flow->stop_sending();
  EXPECT_EQ(waiting.share.with_room_count, 0U);
  EXPECT_FALSE(waiting.flow->over());
  worker.answer(worker.read());
  waiting.run_until([&] { return waiting.flow->over(); });
  EXPECT_EQ(waiting.interval->valid, 1U);
}

// The batch is not sent any further.
TEST(DatagramFlow, AnErrorThatEndsItIsTheOnlyOne) {
  const auto pool = random_pool(66'000, Service::reverse);  // longer than a datagram
  const FakeDatagramWorker worker;
  DrivenDatagrams driven(plan_of(4, 4), pool, worker);
  driven.flow->start();
  EXPECT_TRUE(driven.flow->over());
  EXPECT_EQ(driven.interval->errors.total(), 1U);
}

// The socket has room again when all is sent, and that is no news any more.
TEST(DatagramFlow, RoomIsAwaitedOnlyWhileDatagramsAreUnsent) {
  constexpr std::uint32_t kRequests = 200;
  NarrowSockets sockets;
  const auto pool = hello_pool();
  DrivenLoad driven(plan_of(kRequests, kRequests), pool);
  driven.share.datagrams.resize(DatagramFlow::receive_room(100));
  DatagramFlow flow("flow", 0, std::move(sockets.flow), driven.share);
  flow.start();
  ASSERT_LT(driven.interval->tx_bytes, kRequests * 25U);
  driven.run_until([&] {
    std::byte datagram[64];
    while (::recv(sockets.worker.get(), datagram, sizeof datagram, 0) > 0) continue;
    return driven.interval->tx_bytes == kRequests * 25U;
  });
  EXPECT_TRUE(driven.is_quiet());
}

// A free slot has the sequence of its next request, which is not yet sent.
TEST(DatagramFlow, AnAnswerToTheNextRequestIsNone) {
  const auto pool = hello_pool();
  FakeDatagramWorker worker;
  DrivenDatagrams driven(counting_plan(2, 1, kBound), pool, worker);
  driven.flow->start();
  const Asked asked = worker.read();
  worker.answer(asked);
  worker.answer({asked.sequence + 1, asked.payload});
  driven.run_until([&] { return driven.interval->errors.total() != 0; });
  EXPECT_EQ(driven.interval->valid, 1U);
  EXPECT_EQ(driven.interval->errors.of(ErrorKind::bad_frame), 1U);
  EXPECT_EQ(driven.interval->duplicates, 0U);
}

TEST(DatagramFlow, EachSlotKnowsWhatItLost) {
  const auto pool = hello_pool();
  FakeDatagramWorker worker;
  DrivenDatagrams driven(counting_plan(8, 4, kBound), pool, worker);
  driven.flow->start();
  std::vector<Asked> lost(4);
  for (Asked& each : lost) each = worker.read();
  driven.flow->on_deadline(driven.flow->deadline());
  ASSERT_EQ(driven.interval->lost, 4U);
  std::vector<Asked> next(4);
  for (Asked& each : next) each = worker.read();
  for (const Asked& each : lost) worker.answer(each);
  driven.run_until([&] { return driven.interval->late_answers == 4; });
  for (const Asked& each : lost) worker.answer(each);
  driven.run_until([&] { return driven.interval->duplicates == 4; });
  for (const Asked& each : next) worker.answer(each);
  driven.run_until([&] { return driven.flow->over(); });
  EXPECT_EQ(driven.interval->valid, 4U);
  EXPECT_EQ(driven.interval->late_answers, 4U);
  EXPECT_EQ(driven.interval->duplicates, 4U);
}

// It does not know about older ones, which count as duplicates.
TEST(DatagramFlow, WhatASlotLostIsKnownFor63Requests) {
  const auto pool = hello_pool();
  FakeDatagramWorker worker;
  DrivenDatagrams driven(counting_plan(66, 1, kBound), pool, worker);
  driven.flow->start();
  const Asked oldest = worker.read();
  driven.flow->on_deadline(driven.flow->deadline());
  const Asked second = worker.read();
  driven.flow->on_deadline(driven.flow->deadline());
  for (std::uint64_t valid = 1; valid <= 62; ++valid) {
    worker.answer(worker.read());
    driven.run_until([&] { return driven.interval->valid == valid; });
  }
  const Asked now = worker.read();
  ASSERT_EQ(now.sequence, 64U);
  worker.answer(second);
  worker.answer(oldest);
  driven.run_until([&] { return driven.interval->duplicates == 1; });
  EXPECT_EQ(driven.interval->late_answers, 1U);
}

TEST(DatagramFlow, RequestsInOrder) {
  const auto pool = random_pool(20, Service::reverse);
  FakeDatagramWorker worker;
  LoadPlan plan = plan_of(600, 1);
  plan.in_order = true;
  DrivenDatagrams driven(plan, pool, worker);
  driven.flow->start();
  for (std::uint32_t i = 0; i < 600; ++i) {
    const Asked asked = worker.read();
    const auto frame = pool.frames(i % pool.size(), 1).subspan(protocol::kFrameHeaderSize);
    ASSERT_EQ(asked.payload, Bytes(frame.begin(), frame.end())) << i;
    worker.answer(asked);
    driven.run_until([&] { return driven.interval->valid == i + 1; });
  }
  EXPECT_TRUE(driven.flow->over());
}

TEST(DatagramFlow, AnAnswerMayComeAfterTheDeadline) {
  const auto pool = hello_pool();
  FakeDatagramWorker worker;
  LoadPlan plan = counting_plan(2, 1, kBound);
  plan.deadline = 1ns;
  DrivenDatagrams driven(plan, pool, worker);
  driven.flow->start();
  for (std::uint64_t i = 1; i <= 2; ++i) {
    worker.answer(worker.read());
    driven.run_until([&] { return driven.interval->errors.of(ErrorKind::late) == i; });
  }
  EXPECT_TRUE(driven.flow->over());
  EXPECT_EQ(driven.interval->answered, 2U);
  EXPECT_EQ(driven.interval->valid, 0U);
}

}  // namespace
}  // namespace offload::client
