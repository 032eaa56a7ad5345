#include "kernels/rdma/wait.hpp"

#include <gtest/gtest.h>

#include "tests/rdma/model/card_fixture.hpp"
#include "tests/support/eventually.hpp"

/// Entries that hold back what is behind them.
namespace offload::rdma::model::test {
namespace {

using rdma::Opcode;
using rdma::Posted;
using rdma::Syndrome;

/// Two more queue pairs, of which one sends on what comes to other_.
class WaitTest : public CardTest {
 protected:
  WaitTest() { card_.connect(third_.send.number, fourth_.send.number); }

  void work() {
    while (card_.progress()) continue;
  }
  static void send(Owner& from, const rdma::LocalBuffer& buffer) {
    rdma::SendWork work;
    work.opcode = Opcode::send;
    work.flags = rdma::kSignaled;
    work.buffers = &buffer;
    work.buffer_count = 1;
    ASSERT_EQ(from.post(work), Posted::done);
    from.publish();
  }
  static void hold(Owner& owner, rdma::SendWork work) {
    work.flags = rdma::kSignaled;
    ASSERT_EQ(owner.post(work), Posted::done);
    ASSERT_EQ(owner.post({.flags = rdma::kSignaled}), Posted::done);
    owner.publish();
  }

  Owner third_{card_, 16, 8};
  Owner fourth_{card_, 16, 8};
};

// One queue sends on what another has sent, posted before the other was: the data was there first.
TEST_F(WaitTest, AQueueWaitsForAnotherOnesCompletion) {
  const rdma::LocalBuffer between = there_.local(0, 8);
  for (std::uint64_t round = 0; round < 20; ++round) {
    here_.word(0) = 0x1234 + round;
    there_.word(1) = 0;
    ASSERT_EQ(other_.post_receive(between), Posted::done);
    ASSERT_EQ(fourth_.post_receive(there_.local(8, 8)), Posted::done);
    ASSERT_EQ(third_.post(rdma::wait_for_completion(one_.send.completions, round)), Posted::done);
    send(third_, between);
    work();
    EXPECT_FALSE(third_.poll());
    EXPECT_EQ(there_.word(1), 0U);
    send(one_, here_.local(0, 8));
    work();
    EXPECT_EQ(there_.word(1), 0x1234 + round);
    const auto sent = third_.poll();
    ASSERT_TRUE(sent);
    EXPECT_EQ(sent->counter, 2 * round + 1) << "the wait made no completion";
    EXPECT_TRUE(one_.poll() && other_.poll_receive() && fourth_.poll_receive());
  }
}

TEST_F(WaitTest, ForAReceiveAndForSeveral) {
  hold(third_, rdma::wait_for_completion(other_.receive.completions, 2));
  for (std::uint32_t i = 0; i < 3; ++i) {
    work();
    EXPECT_FALSE(third_.poll()) << i;
    ASSERT_EQ(other_.post_receive(there_.local(0, 8)), Posted::done);
    send(one_, here_.local(0, 8));
  }
  work();
  const auto waited = third_.poll();
  ASSERT_TRUE(waited);
  EXPECT_EQ(waited->opcode, Opcode::wait);
  EXPECT_TRUE(third_.poll());
}

TEST_F(WaitTest, WhatIsThereAlreadyIsNotWaitedFor) {
  here_.word(0) = 1;
  ASSERT_EQ(other_.post_receive(there_.local(0, 8)), Posted::done);
  send(one_, here_.local(0, 8));
  work();
  hold(third_, rdma::wait_for_completion(one_.send.completions, 0));
  work();
  EXPECT_TRUE(third_.poll() && third_.poll());
}

// A completion that is late is not there yet.
TEST_F(WaitTest, BesideARudeCard) {
  card_.set_rude(5);
  hold(third_, rdma::wait_for_completion(one_.send.completions, 0));
  for (int i = 0; i < 100; ++i) card_.progress();
  EXPECT_FALSE(third_.poll());
  ASSERT_EQ(one_.post({.flags = rdma::kSignaled}), Posted::done);
  one_.publish();
  for (int tries = 0; !third_.poll(); ++tries) {
    ASSERT_LT(tries, 1000);
    card_.progress();
  }
  EXPECT_TRUE(one_.poll());
}

TEST_F(WaitTest, AnErrorIsACompletionToo) {
  hold(third_, rdma::wait_for_completion(one_.send.completions, 0));
  card_.set_fail_without_receive(true);
  send(one_, here_.local(0, 8));
  work();
  EXPECT_EQ(one_.poll().value().syndrome, Syndrome::receiver_not_ready);
  EXPECT_FALSE(third_.poll().value().is_error());
}

TEST_F(WaitTest, AQueueThatIsNoneIsAnError) {
  for (const std::uint32_t number : {0U, one_.send.number, 0xff'ffffU, 0xffff'ffffU}) {
    Card card;
    Owner owner(card, 8, 8);
    rdma::CompletionQueue none = owner.send.completions;
    none.number = number;
    hold(owner, rdma::wait_for_completion(none, 0));
    card.progress();
    EXPECT_EQ(owner.poll().value().syndrome, Syndrome::local_queue_operation);
    EXPECT_EQ(owner.poll().value().syndrome, Syndrome::flushed);
    EXPECT_EQ(card.fault(), "");
  }
}

TEST_F(WaitTest, AQueueWaitsForATime) {
  constexpr std::uint64_t kHour = 3'600'000'000'000;
  constexpr std::uint64_t kSoon = 2'000'000;
  hold(third_, rdma::wait_for_time(rdma::now_ns() - 1));
  work();
  EXPECT_TRUE(third_.poll() && third_.poll());
  const std::uint64_t time = rdma::now_ns() + kSoon;
  hold(third_, rdma::wait_for_time(time));
  EXPECT_TRUE(support::eventually([&] {
    card_.progress();
    return third_.poll().has_value();
  }));
  EXPECT_GE(rdma::now_ns(), time);
  hold(fourth_, rdma::wait_for_time(rdma::now_ns() + kHour));
  work();
  EXPECT_FALSE(fourth_.poll());
}

// A queue of raw packets has no other operations than these.
TEST_F(WaitTest, AQueueOfRawPacketsWaitsToo) {
  Owner raw(card_, 8, 8, 0);
  hold(raw, rdma::wait_for_time(rdma::now_ns()));
  EXPECT_TRUE(support::eventually([&] {
    card_.progress();
    return raw.poll().has_value();
  }));
}

}  // namespace
}  // namespace offload::rdma::model::test
