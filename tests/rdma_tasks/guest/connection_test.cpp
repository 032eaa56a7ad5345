#include <cstring>
#include <list>

#include "rdma_tasks/shared_receives.hpp"
#include "tests/rdma_tasks/guest/fixture.hpp"

/// Errors over a real device, and many connections.
namespace offload::rdma {
namespace {

using core::Cause;
using core::Status;
using progress::Context;

class PairTest : public DeviceTest {
 protected:
  /// Starts both connections, and connects them if `connected`.
  void make(const ConnectionOptions& options = {}, bool connected = true) {
    a_.emplace(objects(), options, engine_, "a");
    b_.emplace(objects(), options, engine_, "b");
    a_->connection.start();
    b_->connection.start();
    if (connected) connect(a_->connection, b_->connection);
  }
  ~PairTest() override {
    if (!a_) return;
    stop(a_->connection);
    stop(b_->connection);
  }
  SendTask& send(Side& side, const memory::BufferRef& source) {
    SendTask& task = taken(side.sends);
    task.source = source.get();
    EXPECT_EQ(side.connection.submit(task), Status());
    return task;
  }
  ReceiveTask& receive(Side& side, const memory::BufferRef& target) {
    ReceiveTask& task = taken(side.receives);
    task.destination = target.get();
    EXPECT_EQ(side.connection.submit(task), Status());
    return task;
  }
  bool ended(Side& side, std::size_t count) {
    return until([&] { return side.outcomes.all.size() >= count; });
  }
  void expect_failed(Side& side, const RdmaTask& task, ibv_wc_status status) {
    ASSERT_TRUE(ended(side, 1));
    EXPECT_EQ(side.outcomes.all[0], "io_failed");
    EXPECT_EQ(task.cause().domain, Cause::Domain::work_completion);
    EXPECT_EQ(task.cause().status, status) << task.explain();
    EXPECT_FALSE(side.connection.connected());
  }

  WriteTask& write_with_a_wrong_key(const memory::Buffer& source) {
    WriteTask& write = taken(a_->writes);
    write.source = &source;
    write.to = place(4096);
    write.to.range.key ^= 0x5a5a00;
    return write;
  }

  std::optional<Side> a_;
  std::optional<Side> b_;
};

TEST_F(PairTest, AWrongKeyIsARemoteAccessError) {
  make();
  const auto source = data(0, 100);
  WriteTask& write = write_with_a_wrong_key(*source);
  ASSERT_EQ(a_->connection.submit(write), Status());
  expect_failed(*a_, write, IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(bytes(4096, 1)[0], std::byte{0});
}

TEST_F(PairTest, APeerThatAllowsNoWritesIsARemoteError) {
  ConnectionOptions options;
  options.access = memory::Access::none;
  make(options);
  const auto source = data(0, 100);
  WriteTask& write = taken(a_->writes);
  write.source = source.get();
  write.to = place(4096);
  ASSERT_EQ(a_->connection.submit(write), Status());
  ASSERT_TRUE(ended(*a_, 1));
  EXPECT_EQ(a_->outcomes.all[0], "io_failed");
  EXPECT_EQ(bytes(4096, 1)[0], std::byte{0});
}

TEST_F(PairTest, APeerWithoutReceivesIsToldAfterItsRetries) {
  ConnectionOptions options;
  options.rts.rnr_retry = 1;
  options.rtr.min_rnr_timer = 12;
  make(options);
  const auto source = data(0, 100);
  const SendTask& task = send(*a_, source);
  expect_failed(*a_, task, IBV_WC_RNR_RETRY_EXC_ERR);
}

TEST_F(PairTest, APeerThatIsGoneIsToldAfterItsRetries) {
  make();
  stop(b_->connection);
  const auto source = data(0, 100);
  const SendTask& task = send(*a_, source);
  expect_failed(*a_, task, IBV_WC_RETRY_EXC_ERR);
}

TEST_F(PairTest, AMessageThatIsTooLongFailsOnBothEnds) {
  make();
  const auto source = data(0, 200);
  const auto target = room(4096, 100);
  ReceiveTask& receiver = receive(*b_, target);
  const SendTask& sender = send(*a_, source);
  // The error depends on the device: Soft-RoCE reports others than the standard names.
  ASSERT_TRUE(ended(*a_, 1));
  ASSERT_TRUE(ended(*b_, 1));
  EXPECT_EQ(a_->outcomes.all, Lines{"io_failed"});
  EXPECT_EQ(b_->outcomes.all, Lines{"io_failed"});
  EXPECT_NE(sender.cause().status, IBV_WC_SUCCESS);
  EXPECT_NE(receiver.cause().status, IBV_WC_SUCCESS);
  EXPECT_TRUE(target->data().empty());
}

TEST_F(PairTest, WhatFollowsAnErrorIsFlushed) {
  make();
  const auto source = data(0, 100);
  WriteTask& write = write_with_a_wrong_key(*source);
  ASSERT_EQ(a_->connection.submit_unflushed(write), Status());
  SendTask& following = taken(a_->sends);
  ASSERT_EQ(a_->connection.submit_unflushed(following), Status());
  ASSERT_EQ(a_->connection.flush(), Status());
  ASSERT_TRUE(ended(*a_, 2));
  EXPECT_EQ(a_->outcomes.all, (Lines{"io_failed", "io_failed"}));
  EXPECT_EQ(following.cause().status, IBV_WC_WR_FLUSH_ERR);
}

TEST_F(PairTest, StopFlushesAndAStartConnectsAnew) {
  make();
  const auto source = data(0, 100);
  const auto target = room(4096, 100);
  ReceiveTask& left = receive(*b_, target);
  b_->connection.stop();
  ASSERT_TRUE(until([&] { return b_->connection.state() == Context::State::idle; }));
  EXPECT_EQ(b_->outcomes.all, Lines{"shutdown"});
  stop(a_->connection);
  a_->connection.start();
  b_->connection.start();
  connect(a_->connection, b_->connection);
  ASSERT_EQ(b_->connection.submit(left), Status());
  send(*a_, source);
  ASSERT_TRUE(ended(*b_, 2));
  EXPECT_EQ(b_->outcomes.all, (Lines{"shutdown", "ok"}));
  EXPECT_EQ(std::memcmp(source->data().data(), target->data().data(), 100), 0);
}

TEST_F(PairTest, ReceivesPostedBeforeTheConnectionAreUsed) {
  make({}, false);
  const auto source = data(0, 100);
  const auto target = room(4096, 100);
  receive(*b_, target);
  connect(a_->connection, b_->connection);
  send(*a_, source);
  ASSERT_TRUE(ended(*b_, 1));
  EXPECT_EQ(b_->outcomes.all, Lines{"ok"});
}

TEST_F(PairTest, StopBeforeTheConnectionGivesReceivesBack) {
  make({}, false);
  const auto target = room(4096, 100);
  receive(*b_, target);
  stop(b_->connection);
  EXPECT_EQ(b_->outcomes.all, Lines{"shutdown"});
}

TEST_F(PairTest, ABatchArrivesInItsOrder) {
  ConnectionOptions options;
  options.queues.max_inline_data = 64;
  make(options);
  constexpr std::size_t kCount = 32;
  std::list<memory::BufferRef> targets;
  for (std::size_t i = 0; i < kCount; ++i) {
    targets.push_back(room(65536 + i * 64, 64));
    ReceiveTask& task = taken(b_->receives);
    task.destination = targets.back().get();
    ASSERT_EQ(b_->connection.submit_unflushed(task), Status());
  }
  ASSERT_EQ(b_->connection.flush(), Status());
  for (std::size_t i = 0; i < kCount; ++i) {
    const auto source = data(i * 64, 64);  // inline: the bytes are taken at the flush
    SendTask& task = taken(a_->sends);
    task.source = source.get();
    task.immediate = static_cast<std::uint32_t>(i);
    ASSERT_EQ(a_->connection.submit_unflushed(task), Status());
  }
  ASSERT_EQ(a_->connection.flush(), Status());
  ASSERT_TRUE(ended(*a_, kCount));
  ASSERT_TRUE(ended(*b_, kCount));
  EXPECT_EQ(b_->outcomes.all, Lines(kCount, "ok"));
  EXPECT_EQ(
      std::memcmp(bytes(0, kCount * 64).data(), bytes(65536, kCount * 64).data(), kCount * 64), 0);
}

TEST_F(DeviceTest, ConnectionsShareReceives) {
  constexpr std::size_t kPairs = 3;
  SharedReceives shared(domain_, registrar_, loop_, 8);
  shared.connect(engine_);
  Outcomes outcomes;
  progress::TaskPool<SharedReceiveTask> tasks(shared, 8, outcomes.callbacks<SharedReceiveTask>());
  shared.start();
  std::list<memory::BufferRef> buffers;
  for (std::size_t i = 0; i < 8; ++i) {
    SharedReceiveTask& task = *tasks.allocate();
    buffers.push_back(room(65536 + i * 4096, 4096));
    task.destination = buffers.back().get();
    ASSERT_EQ(shared.submit(task), Status());
  }
  ConnectionOptions options;
  options.queues.max_send_wr = 16;
  ConnectionOptions sharing = options;
  sharing.queues.srq = shared.queue();
  std::list<Side> sides;
  std::vector<std::uint32_t> numbers;
  for (std::size_t i = 0; i < kPairs; ++i) {
    Side& a = sides.emplace_back(objects(), options, engine_, "a");
    Side& b = sides.emplace_back(objects(), sharing, engine_, "b");
    a.connection.start();
    b.connection.start();
    connect(a.connection, b.connection);
    numbers.push_back(b.connection.queue_pair()->qp_num());
    buffers.push_back(data(i * 4096, 1000 + i));
    SendTask& send = taken(a.sends);
    send.source = buffers.back().get();
    ASSERT_EQ(a.connection.submit(send), Status());
  }
  EXPECT_TRUE(until([&] { return outcomes.all.size() == kPairs; }));
  EXPECT_EQ(outcomes.all, Lines(kPairs, "ok"));
  for (const SharedReceiveTask& task : tasks.tasks()) {
    if (task.state() != progress::Task::State::done) continue;
    const auto whose = std::find(numbers.begin(), numbers.end(), task.qp_num());
    ASSERT_NE(whose, numbers.end());
    const auto i = static_cast<std::size_t>(whose - numbers.begin());
    const auto sent = bytes(i * 4096, 1000 + i);
    ASSERT_EQ(task.length(), sent.size());
    EXPECT_TRUE(std::equal(sent.begin(), sent.end(), task.destination->data().begin()));
  }
  for (Side& side : sides) stop(side.connection);
  stop(shared);
  EXPECT_EQ(outcomes.all.size(), 8U);
}

TEST_F(DeviceTest, ManyConnectionsShareAnEngineAndACompletionQueue) {
  constexpr std::size_t kPairs = 8;
  ConnectionOptions options;
  options.queues.max_send_wr = options.queues.max_recv_wr = 16;
  std::list<Side> sides;
  std::list<memory::BufferRef> buffers;
  for (std::size_t i = 0; i < kPairs; ++i) {
    Side& a = sides.emplace_back(objects(), options, engine_, "a");
    Side& b = sides.emplace_back(objects(), options, engine_, "b");
    a.connection.start();
    b.connection.start();
    connect(a.connection, b.connection);
    buffers.push_back(room(65536 + i * 4096, 4096));
    ReceiveTask& receive = taken(b.receives);
    receive.destination = buffers.back().get();
    ASSERT_EQ(b.connection.submit(receive), Status());
    buffers.push_back(data(i * 4096, 4096));
    SendTask& send = taken(a.sends);
    send.source = buffers.back().get();
    ASSERT_EQ(a.connection.submit(send), Status());
  }
  for (Side& side : sides) {
    EXPECT_TRUE(until([&] { return !side.outcomes.all.empty(); }));
    EXPECT_EQ(side.outcomes.all, Lines{"ok"});
  }
  EXPECT_EQ(std::memcmp(bytes(0, kPairs * 4096).data(), bytes(65536, kPairs * 4096).data(),
                        kPairs * 4096),
            0);
  for (Side& side : sides) stop(side.connection);
}

}  // namespace
}  // namespace offload::rdma
