#include "rdma/emulator/queue_emulator.hpp"
#include "tests/rdma_tasks/guest/emulator_fixture.hpp"

/// Errors of entries over a device that is not an mlx5 device.

namespace offload::rdma {
namespace {

TEST_F(EmulatorPairTest, AWrongRemoteKey) {
  make();
  const LocalBuffer buffer = local(0, 100);
  wire::SendWork work = work_of(Opcode::rdma_write, &buffer, 1);
  work.flags = 0;
  work.remote = remote(kTo);
  work.remote.rkey ^= 0x5a5a00;
  ASSERT_EQ(a_->owner->post(work), Posted::done);
  post(*a_, work_of(Opcode::send, nullptr, 0));
  expect_failed(*a_, Syndrome::remote_access);
  EXPECT_EQ(next(*a_).syndrome, Syndrome::flushed);
  EXPECT_NE(a_->told.find("entry 0: "), std::string::npos) << a_->told;
  EXPECT_EQ(bytes(kTo, 1)[0], std::byte{0});
  expect_flushes(*a_);
}

TEST_F(EmulatorPairTest, AWrongLocalKey) {
  make();
  LocalBuffer buffer = local(0, 5000);
  buffer.lkey ^= 0x5a5a00;
  wire::SendWork work = work_of(Opcode::rdma_write, &buffer, 1);
  work.remote = remote(kTo);
  post(*a_, work);
  const auto completion = next(*a_);
  EXPECT_EQ(completion.kind, CqeKind::request_error);  // which one differs from device to device
  EXPECT_EQ(bytes(kTo, 1)[0], std::byte{0});
  expect_flushes(*a_);
}

TEST_F(EmulatorPairTest, AMessageThatIsTooLongFailsAtBothEnds) {
  make();
  post_receive(*b_, local(kTo, 100));
  const LocalBuffer buffer = local(0, 200);
  post(*a_, work_of(Opcode::send, &buffer, 1));
  EXPECT_EQ(next(*a_).kind, CqeKind::request_error);
  EXPECT_EQ(next_receive(*b_).kind, CqeKind::receive_error);
  expect_flushes(*a_);
  expect_flushes(*b_);
}

TEST_F(EmulatorPairTest, APeerWithoutReceives) {
  ConnectionOptions options = some_inline();
  options.rts.rnr_retry = 1;
  options.rtr.min_rnr_timer = 12;
  make(options);
  const LocalBuffer buffer = local(0, 100);
  post(*a_, work_of(Opcode::send, &buffer, 1));
  expect_failed(*a_, Syndrome::receiver_not_ready);
  expect_flushes(*a_);
}

TEST_F(EmulatorPairTest, APeerThatIsGone) {
  make();
  stop(*b_->emulator);
  stop(b_->connection);
  const LocalBuffer buffer = local(0, 100);
  post(*a_, work_of(Opcode::send, &buffer, 1));
  expect_failed(*a_, Syndrome::transport_retries);
  expect_flushes(*a_);
}

TEST_F(EmulatorPairTest, AStopInTheMiddleGivesAllBack) {
  make();
  post_receive(*a_, local(kTo, 100));
  const LocalBuffer buffer = local(0, 1U << 20);
  wire::SendWork work = work_of(Opcode::rdma_write, &buffer, 1);
  work.remote = remote(kTo);
  for (int i = 0; i < 20; ++i) ASSERT_EQ(a_->owner->post(work), Posted::done);
  a_->owner->publish();
  for (int i = 0; i < 3; ++i) engine_.progress();
  stop(*a_->emulator);
  int completions = 0;
  Syndrome last = Syndrome::none;
  for (; const auto completion = a_->owner->poll(); ++completions) last = completion->syndrome;
  EXPECT_EQ(completions, 20);
  EXPECT_EQ(last, Syndrome::flushed);
  const auto received = a_->owner->poll_receive();
  ASSERT_TRUE(received);
  EXPECT_EQ(received->syndrome, Syndrome::flushed);
}

}  // namespace
}  // namespace offload::rdma
