#include <chrono>
#include <string>
#include <utility>

#include "tests/rdma/emulator/emulator_fixture.hpp"
#include "tests/support/log_capture.hpp"
#include "tests/support/thrown.hpp"

/// How a queue behind an emulator fails and ends: its owner's polls always return.
namespace offload::rdma {
namespace {

using wire::LocalBuffer;
using wire::Opcode;
using wire::Posted;
using wire::Syndrome;

class EmulatorErrorTest : public EmulatorTest {
 protected:
  /// Posts three sends; the device gets all of them.
  void post_three() {
    for (int i = 0; i < 3; ++i) ASSERT_EQ(owner_.post(work_of(Opcode::send, 0)), Posted::done);
    ASSERT_EQ(owner_.post_receive({0x1000, 8, 7}), Posted::done);
    owner_.publish();
    turn();
    ASSERT_EQ(native().sends.size(), 3U);
  }
  void expect_flushed(std::uint16_t first, std::uint16_t end) {
    for (std::uint16_t i = first; i != end; ++i) expect(Syndrome::flushed, i);
    EXPECT_FALSE(owner_.poll());
  }
  void expect_receive_flushed() {
    const auto completion = owner_.poll_receive();
    ASSERT_TRUE(completion);
    EXPECT_EQ(completion->kind, wire::CqeKind::receive_error);
    EXPECT_EQ(completion->syndrome, Syndrome::flushed);
    EXPECT_FALSE(owner_.poll_receive());
  }
  void expect_told(const std::string& words) {
    ASSERT_EQ(told_.size(), 1U);
    EXPECT_EQ(told_[0], "emulator 'emulator' of queue pair 100 (RC) on fake0" + words);
    EXPECT_EQ(native().attributes.qp_state, IBV_QPS_ERR);
  }
};

TEST_F(EmulatorErrorTest, AFailureHasItsSyndromeAndTheRestIsFlushed) {
  post_three();
  finish(IBV_WC_REM_ACCESS_ERR);
  expect(Syndrome::remote_access, 0);
  expect_flushed(1, 3);
  expect_receive_flushed();
  expect_told(
      ": entry 0: a status (status 10, vendor code 0x88): the peer's memory is not registered, "
      "its key or range is wrong, or it does not allow that access");
  // Entries that are posted from now on are flushed too: the owner has not noticed the error yet.
  go(work_of(Opcode::send, 0));
  go(work_of(Opcode::nop, 0));
  expect_flushed(3, 5);
  ASSERT_EQ(owner_.post_receive({0x1000, 8, 7}), Posted::done);
  turn();
  expect_receive_flushed();
  EXPECT_EQ(told_.size(), 1U);
}

TEST_F(EmulatorErrorTest, EachStatusIsASyndrome) {
  const std::pair<ibv_wc_status, Syndrome> all[] = {
      {IBV_WC_LOC_LEN_ERR, Syndrome::local_length},
      {IBV_WC_LOC_QP_OP_ERR, Syndrome::local_queue_operation},
      {IBV_WC_LOC_PROT_ERR, Syndrome::local_protection},
      {IBV_WC_BAD_RESP_ERR, Syndrome::bad_response},
      {IBV_WC_LOC_ACCESS_ERR, Syndrome::local_access},
      {IBV_WC_REM_INV_REQ_ERR, Syndrome::remote_invalid_request},
      {IBV_WC_REM_OP_ERR, Syndrome::remote_operation},
      {IBV_WC_RETRY_EXC_ERR, Syndrome::transport_retries},
      {IBV_WC_RESP_TIMEOUT_ERR, Syndrome::transport_retries},
      {IBV_WC_RNR_RETRY_EXC_ERR, Syndrome::receiver_not_ready},
      {IBV_WC_REM_ABORT_ERR, Syndrome::remote_aborted},
      {IBV_WC_FATAL_ERR, Syndrome::local_queue_operation}};
  for (const auto& [status, syndrome] : all) {
    QueuePair pair(domain_, loop_.queue(), loop_.queue(), options(QpType::rc));
    QueueOwner owner(kSizes, pair.qp_num());
    QueueEmulator emulator({domain_, loop_, pair}, owner.queues);
    emulator.connect(engine_);
    emulator.start();
    emulator.start_sends();
    ASSERT_EQ(owner.post(work_of(Opcode::send, 0)), Posted::done);
    owner.publish();
    turn();
    test::fake().finish_send(*test::fake().queue_pairs.at(1), status);
    turn();
    const auto completion = owner.poll();
    ASSERT_TRUE(completion);
    EXPECT_EQ(completion->syndrome, syndrome);
    EXPECT_EQ(completion->vendor, 0x88U);
    emulator.stop();
    turn();
  }
}

TEST_F(EmulatorErrorTest, AReceiveThatFailsBreaksTheQueueToo) {
  post_three();
  ibv_wc told{};
  told.status = IBV_WC_LOC_LEN_ERR;
  told.vendor_err = 5;
  test::fake().finish_receive(native(), told);
  turn();
  const auto completion = owner_.poll_receive();
  ASSERT_TRUE(completion);
  EXPECT_EQ(completion->syndrome, Syndrome::local_length);
  EXPECT_EQ(completion->vendor, 5U);
  expect_flushed(0, 3);
  expect_told(
      ": receive 0: a status (status 1, vendor code 0x5): a message is longer than the receive "
      "posted for it, or than the device can send");
}

// The entries before it are done, those after it are flushed.
TEST_F(EmulatorErrorTest, WhatTheQueuePairDoesNotTake) {
  const LocalBuffer buffers[] = {{1, 8, 1}, {2, 8, 1}, {3, 8, 1}, {4, 8, 1}};
  wire::SendWork work = work_of(Opcode::send, 0);
  ASSERT_EQ(owner_.post(work), Posted::done);
  work.buffers = buffers;
  work.buffer_count = 4;
  ASSERT_EQ(owner_.post(work), Posted::done);
  go(work_of(Opcode::nop));
  ASSERT_EQ(native().sends.size(), 1U);
  EXPECT_FALSE(owner_.poll());
  EXPECT_TRUE(told_.empty());
  finish();
  expect(Syndrome::local_queue_operation, 1);
  expect_flushed(3, 4);
  expect_told(": entry 1 has an operation that the queue pair does not support");
}

TEST_F(EmulatorErrorTest, AWaitIsRefusedByName) {
  go(wire::wait_for_completion(owner_.queues.receive.completions, 0));
  EXPECT_TRUE(native().sends.empty());
  expect(Syndrome::local_queue_operation, 0);
  expect_told(
      ": entry 0 is a WAIT, which libibverbs does not support; use the queues of an mlx5 card");
}

struct Refused {
  Opcode opcode;
  std::uint64_t address;
  std::uint32_t length;
  std::uint32_t buffers;
  Syndrome syndrome;
};

class EmulatorRefusalTest : public EmulatorTest, public testing::WithParamInterface<Refused> {};

TEST_P(EmulatorRefusalTest, IsCompletedWithoutTheDevice) {
  const Refused& refused = GetParam();
  wire::SendWork work = work_of(refused.opcode, 0);
  work.remote.address = refused.address;
  const LocalBuffer buffers[] = {{0x1000, refused.length, 1}, {0x1000, refused.length, 1}};
  work.buffers = buffers;
  work.buffer_count = refused.buffers;
  go(work);
  EXPECT_TRUE(native().sends.empty());
  expect(refused.syndrome, 0);
}

INSTANTIATE_TEST_SUITE_P(
    , EmulatorRefusalTest,
    testing::Values(Refused{Opcode::fetch_add, 0x1004, 8, 1, Syndrome::remote_invalid_request},
                    Refused{Opcode::compare_swap, 0x1000, 4, 1, Syndrome::local_length},
                    Refused{Opcode::rdma_write, 0x1000, 0x7fff'ffff, 2, Syndrome::local_length}));

class EmulatorUcTest : public EmulatorTest {
 protected:
  EmulatorUcTest() : EmulatorTest(QpType::uc) {}
};

TEST_F(EmulatorUcTest, AReadIsRefused) {
  const LocalBuffer buffer{0x1000, 8, 1};
  wire::SendWork work = work_of(Opcode::rdma_read, 0);
  work.buffers = &buffer;
  work.buffer_count = 1;
  go(work);
  expect(Syndrome::local_queue_operation, 0);
}

TEST_F(EmulatorErrorTest, AnEntryThatBreaksTheFormatEndsTheQueue) {
  ASSERT_EQ(owner_.post(work_of(Opcode::send, 0)), Posted::done);
  ASSERT_EQ(owner_.post(work_of(Opcode::send, 0)), Posted::done);
  owner_.queues.send.ring.at(1, 0).words[1] ^= wire::big_endian(0x100);
  owner_.publish();
  turn();
  finish();
  expect(Syndrome::local_queue_operation, 1);
  EXPECT_FALSE(owner_.poll());
  expect_told(": entry 1: it names another queue");
  go(work_of(Opcode::send));
  EXPECT_TRUE(native().sends.empty());
}

TEST_F(EmulatorErrorTest, ARecordThatCannotBe) {
  post_three();
  wire::store_record(owner_.queues.send.record, 3 + 32);
  wire::ring_doorbell(owner_.queues.send.doorbell,
                      wire::control_segment(34, pair_.qp_num(), 1, {}));
  turn();
  for (int i = 0; i < 3; ++i) finish();
  expect_told(": the record is beyond the ring");
  // The owner polls for the entries that it believes to have posted.
  owner_.sent.published = owner_.sent.posted = 35;
  expect(Syndrome::local_queue_operation, 3);
}

TEST_F(EmulatorErrorTest, ARecordOfReceivesThatCannotBe) {
  post_three();
  wire::store_record(owner_.queues.receive.record, 100);
  turn();
  expect_told(": the record of receives is beyond the ring");
  expect_flushed(0, 3);
  expect_receive_flushed();
}

// The device has taken two of four and refuses the third.
TEST_F(EmulatorErrorTest, APostThatTheDeviceRefuses) {
  for (int i = 0; i < 4; ++i) ASSERT_EQ(owner_.post(work_of(Opcode::send)), Posted::done);
  owner_.publish();
  test::fake().fail_at = static_cast<int>(test::fake().calls.size()) + 2;
  test::fake().fail_with = EINVAL;
  engine_.progress();  // the completion queue is not polled yet
  turn();
  expect(Syndrome::flushed, 0);
  expect(Syndrome::flushed, 1);
  expect(Syndrome::local_queue_operation, 2);
  expect_flushed(3, 4);
  expect_told(": entry 2 cannot be posted: " + core::describe_errno(EINVAL));
}

TEST_F(EmulatorErrorTest, AReceiveThatTheDeviceRefuses) {
  test::fake().fail_call = "post_recv";
  test::fake().fail_with = EINVAL;
  ASSERT_EQ(owner_.post_receive({0x1000, 8, 7}), Posted::done);
  turn();
  expect_receive_flushed();
  expect_told(": cannot post a receive: " + core::describe_errno(EINVAL));
}

TEST_F(EmulatorErrorTest, ACompletionQueueThatFails) {
  post_three();
  native().attributes = {};
  test::fake().fail_call = "poll_cq";
  turn();
  expect_flushed(0, 3);
  expect_receive_flushed();
  expect_told(": its completions are lost");
}

TEST_F(EmulatorErrorTest, ItsOwnerMayBreakIt) {
  post_three();
  emulator_->fail({core::ErrorCode::connection_reset, "the peer is gone"});
  turn();
  expect_flushed(0, 3);
  expect_receive_flushed();
  EXPECT_STREQ(emulator_->error().value().what(), "the peer is gone");
  EXPECT_TRUE(told_.empty()) << "who breaks it knows";
}

TEST_F(EmulatorErrorTest, AStopGivesAllBack) {
  post_three();
  for (int i = 0; i < 3; ++i) ASSERT_EQ(owner_.post(work_of(Opcode::send)), Posted::done);
  owner_.publish();  // the device has room for one of them
  turn();
  EXPECT_EQ(native().sends.size(), kMostSends);
  emulator_->stop();
  EXPECT_EQ(emulator_->state(), progress::Context::State::stopping);
  turn();
  EXPECT_EQ(emulator_->state(), progress::Context::State::idle);
  expect_flushed(0, 6);
  expect_receive_flushed();
  EXPECT_TRUE(told_.empty());
  EXPECT_THROW(emulator_->start(), core::Error) << "its queue pair is in error";
}

TEST_F(EmulatorErrorTest, ItMayBeStoppedWhenItTellsOfAnError) {
  stops_on_error_ = true;
  post_three();
  finish(IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(emulator_->state(), progress::Context::State::idle);
  EXPECT_EQ(told_.size(), 1U);
  expect(Syndrome::transport_retries, 0);
  expect_flushed(1, 3);
}

TEST_F(EmulatorErrorTest, DatagramsAndRawPacketsAreRefusedByName) {
  for (const auto& [type, name] :
       {std::pair(QpType::ud, "UD"), std::pair(QpType::raw_packet, "raw packet")}) {
    QueuePair pair(domain_, loop_.queue(), loop_.queue(), options(type));
    const QueueOwner owner(kSizes, pair.qp_num());
    const core::Error error = support::thrown_by([&] {
      QueueEmulator({domain_, loop_, pair}, owner.queues, {}, "mine");
    });
    EXPECT_EQ(error.code(), core::ErrorCode::invalid_value);
    EXPECT_EQ(error.what(), "emulator 'mine' of a " + std::string(name) +
                                " queue pair; the type must be RC or UC");
  }
}

// The destructor does not wait, and reports that it was called too early.
TEST_F(EmulatorErrorTest, EndedWhileItRuns) {
  QueuePair pair(domain_, loop_.queue(), loop_.queue(), options(QpType::rc));
  QueueOwner owner(kSizes, pair.qp_num());
  const support::LogCapture log;
  {
    QueueEmulator emulator({domain_, loop_, pair}, owner.queues);
    emulator.connect(engine_);
    emulator.start();
    emulator.start_sends();
    ASSERT_EQ(owner.post(work_of(Opcode::send, 0)), Posted::done);
    owner.publish();
    turn();
  }
  const auto completion = owner.poll();
  ASSERT_TRUE(completion);
  EXPECT_EQ(completion->syndrome, Syndrome::flushed);
  turn();  // the device's own completions come too late
}

}  // namespace
}  // namespace offload::rdma
