#include "rdma_tasks/shared_receives.hpp"

#include <arpa/inet.h>

#include <chrono>
#include <thread>

#include "rdma_tasks/connection.hpp"
#include "tasks/memory/inventory.hpp"
#include "tests/rdma/fake_fixture.hpp"
#include "tests/rdma_tasks/connection_fixture.hpp"
#include "tests/rdma_tasks/outcomes.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/thrown.hpp"

namespace offload::rdma {
namespace {

using core::ErrorCode;
using core::Status;
using progress::Context;
using support::thrown_by;
using test::fake;

class SharedReceivesTest : public FakeDeviceTest {
 protected:
  static constexpr std::uint32_t kDepth = 4;

  SharedReceivesTest()
      : device_("fake0"),
        domain_(device_),
        registrar_(domain_),
        loop_(device_, engine_, 16),
        shared_(domain_, registrar_, loop_, kDepth),
        region_({"region", memory::kLocalAccess}, {memory::allocate_range(4096)}),
        buffers_(16) {
    region_.add_registrar(registrar_);
    region_.start();
    buffers_.start();
    shared_.connect(engine_);
    pool_.emplace(shared_, 8, outcomes_.callbacks<SharedReceiveTask>());
  }
  ~SharedReceivesTest() override {
    if (shared_.state() != Context::State::idle) shared_.stop();
  }
  void turn() {
    for (int i = 0; i < 40; ++i) engine_.progress();
  }
  SharedReceiveTask& task() { return *pool_->allocate(); }
  /// The device fills the receive of that place in the order of posting.
  static void finish(std::size_t place, std::uint32_t queue_pair,
                     ibv_wc_status status = IBV_WC_SUCCESS) {
    ibv_wc told{};
    told.wr_id = fake().shared_receives.at(place).send.wr_id;
    told.status = status;
    told.vendor_err = status == IBV_WC_SUCCESS ? 0 : 0x88;
    told.qp_num = queue_pair;
    told.byte_len = 5;
    told.wc_flags = IBV_WC_WITH_IMM;
    told.imm_data = htonl(9);
    fake().completions.push_back(told);
  }

  DeviceContext device_;
  ProtectionDomain domain_;
  RdmaRegistrar registrar_;
  progress::Engine engine_;
  CompletionLoop loop_;
  SharedReceives shared_;
  memory::MemoryRegion region_;
  memory::BufferInventory buffers_;
  Outcomes outcomes_;
  std::optional<progress::TaskPool<SharedReceiveTask>> pool_;
};

TEST_F(SharedReceivesTest, ReceivesEndInAnyOrderAndSayWhoseTheyAre) {
  shared_.start();
  const auto room = buffers_.take(region_, {region_.ranges()[0].address, 64}).buffer;
  SharedReceiveTask& first = task();
  SharedReceiveTask& second = task();
  second.destination = room.get();
  ASSERT_EQ(shared_.submit_unflushed(first), Status());
  ASSERT_EQ(shared_.submit_unflushed(second), Status());
  ASSERT_EQ(shared_.flush(), Status());
  EXPECT_EQ(fake().doorbells, 1);
  finish(1, 71);
  finish(0, 72);
  turn();
  EXPECT_EQ(outcomes_.all, (Lines{"ok", "ok"}));
  EXPECT_EQ(first.qp_num(), 72U);
  EXPECT_EQ(second.qp_num(), 71U);
  EXPECT_EQ(second.length(), 5U);
  EXPECT_EQ(second.immediate(), 9U);
  EXPECT_EQ(room->data().size(), 5U);
}

TEST_F(SharedReceivesTest, PlacesAreUsedAnew) {
  shared_.start();
  SharedReceiveTask& one = task();
  for (std::size_t i = 0; i < 3 * kDepth; ++i) {
    ASSERT_EQ(shared_.submit(one), Status());
    finish(i, 7);
    turn();
  }
  EXPECT_EQ(outcomes_.all, Lines(3 * kDepth, "ok"));
  for (std::uint32_t i = 0; i < kDepth; ++i) EXPECT_EQ(shared_.submit(task()), Status());
  EXPECT_EQ(shared_.submit(task()), ErrorCode::full);
}

TEST_F(SharedReceivesTest, AFailureHasItsCauseAndTheOthersGoOn) {
  shared_.start();
  SharedReceiveTask& one = task();
  SharedReceiveTask& other = task();
  ASSERT_EQ(shared_.submit(one), Status());
  ASSERT_EQ(shared_.submit(other), Status());
  finish(0, 7, IBV_WC_LOC_LEN_ERR);
  finish(1, 8);
  turn();
  EXPECT_EQ(outcomes_.all, (Lines{"io_failed", "ok"}));
  EXPECT_EQ(one.cause().status, IBV_WC_LOC_LEN_ERR);
  EXPECT_EQ(one.qp_num(), 7U);
}

TEST_F(SharedReceivesTest, WhatTheDeviceDoesNotTakeFails) {
  shared_.start();
  fake().fail_at = static_cast<int>(fake().calls.size()) + 1;  // the second of the batch
  for (int i = 0; i < 3; ++i) ASSERT_EQ(shared_.submit_unflushed(task()), Status());
  ASSERT_EQ(shared_.flush(), Status());
  turn();
  EXPECT_EQ(outcomes_.all, (Lines{"driver", "driver"}));
  finish(0, 7);
  turn();
  EXPECT_EQ(outcomes_.all.back(), "ok");
}

TEST_F(SharedReceivesTest, AStopFromTheCallbackOfOneRefusedEndsTheOthersOnce) {
  shared_.start();
  fake().fail_at = static_cast<int>(fake().calls.size());
  for (int i = 0; i < 3; ++i) ASSERT_EQ(shared_.submit_unflushed(task()), Status());
  ASSERT_EQ(shared_.flush(), Status());
  outcomes_.to_stop = &shared_;
  turn();
  EXPECT_EQ(outcomes_.all, (Lines{"driver", "shutdown", "shutdown"}));
  EXPECT_EQ(shared_.in_flight(), 0U);
  shared_.start();
  EXPECT_EQ(shared_.submit(task()), Status());
}

TEST_F(SharedReceivesTest, StoppingEndsThemAllAndTheQueue) {
  shared_.start();
  ASSERT_NE(shared_.queue(), nullptr);
  EXPECT_EQ(shared_.submit(task()), Status());
  EXPECT_EQ(shared_.submit_unflushed(task()), Status());
  shared_.stop();
  EXPECT_EQ(shared_.state(), Context::State::idle);
  EXPECT_EQ(outcomes_.all, (Lines{"shutdown", "shutdown"}));
  EXPECT_EQ(shared_.queue(), nullptr);
  EXPECT_EQ(fake().open["ibv_create_srq"], 0);
  shared_.start();
  fake().shared_receives.clear();
  EXPECT_EQ(shared_.submit(task()), Status());
  EXPECT_EQ(fake().shared_receives.size(), 1U) << "what was not posted before the stop";
}

TEST_F(SharedReceivesTest, MemoryIsCheckedAsForAConnection) {
  shared_.start();
  memory::MemoryRegion other({"other", memory::kLocalAccess}, {memory::allocate_range(4096)});
  other.start();
  const auto room = buffers_.take(other, {other.ranges()[0].address, 64}).buffer;
  SharedReceiveTask& one = task();
  one.destination = room.get();
  EXPECT_EQ(shared_.submit(one), ErrorCode::invalid_value);
  one.destination = nullptr;
  EXPECT_EQ(shared_.submit(one), Status());
}

TEST_F(SharedReceivesTest, AQueueThatHasFailedTakesNoMore) {
  shared_.start();
  EXPECT_EQ(shared_.submit(task()), Status());
  fake().fail_call = "poll_cq";
  turn();
  EXPECT_EQ(shared_.submit(task()), ErrorCode::driver);
  shared_.stop();
  EXPECT_EQ(outcomes_.all, Lines{"shutdown"});
}

TEST_F(SharedReceivesTest, NoRoomAnywhereIsAnError) {
  EXPECT_EQ(thrown_by([&] { const SharedReceives none(domain_, registrar_, loop_, 0); }).code(),
            ErrorCode::invalid_value);
  SharedReceives many(domain_, registrar_, loop_, 17);
  many.connect(engine_);
  EXPECT_EQ(thrown_by([&] { many.start(); }).code(), ErrorCode::full);
  EXPECT_EQ(fake().open["ibv_create_srq"], 0);
}

class SharingConnectionTest : public SharedReceivesTest {
 protected:
  SharingConnectionTest() {
    shared_.start();
    ConnectionOptions options;
    options.queues.max_send_wr = 4;
    options.queues.max_recv_wr = 0;
    options.queues.srq = shared_.queue();
    connection_.emplace(SharedObjects{device_, domain_, registrar_, loop_}, options);
    connection_->connect(engine_);
    own_receives_.emplace(*connection_, 1, outcomes_.callbacks<ReceiveTask>());
    own_sends_.emplace(*connection_, 1, outcomes_.callbacks<SendTask>());
    connection_->start();
  }
  ~SharingConnectionTest() override { end_connection(); }
  void end_connection() {
    if (connection_->state() == Context::State::running) connection_->stop();
    EXPECT_TRUE(support::eventually([&] { return connection_->state() == Context::State::idle; },
                                    [&] { engine_.progress(); }));
  }
  [[nodiscard]] std::uint32_t number() const { return connection_->queue_pair()->qp_num(); }

  std::optional<Connection> connection_;
  std::optional<progress::TaskPool<ReceiveTask>> own_receives_;
  std::optional<progress::TaskPool<SendTask>> own_sends_;
};

TEST_F(SharingConnectionTest, HasNoReceivesOfItsOwn) {
  EXPECT_EQ(connection_->submit(*own_receives_->allocate()), ErrorCode::not_supported);
}

TEST_F(SharingConnectionTest, LosesNoneThatWasFilledBeforeItStopped) {
  for (int i = 0; i < 3; ++i) ASSERT_EQ(shared_.submit(task()), Status());
  finish(0, number());
  finish(2, number());
  end_connection();
  EXPECT_EQ(outcomes_.all, (Lines{"ok", "ok"}));
  EXPECT_EQ(shared_.in_flight(), 1U);
}

TEST_F(SharingConnectionTest, LosesNoneThatIsFlushedWhileItStops) {
  ASSERT_EQ(shared_.submit(task()), Status());
  const std::uint32_t its = number();
  connection_->stop();
  EXPECT_EQ(connection_->state(), Context::State::stopping);
  finish(0, its, IBV_WC_WR_FLUSH_ERR);
  end_connection();
  EXPECT_EQ(outcomes_.all, (Lines{"io_failed"}));
}

TEST_F(SharingConnectionTest, TakesWhatIsThereBeforeItsQueuePairGoes) {
  const std::uint32_t its = number();
  connection_->stop();  // first, so that it is polled before the completion queue
  ASSERT_EQ(shared_.submit(task()), Status());
  finish(0, its);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // its time is over
  engine_.progress();
  EXPECT_EQ(connection_->state(), Context::State::idle);
  EXPECT_EQ(outcomes_.all, Lines{"ok"});
}

TEST_F(SharingConnectionTest, LosesNoneWhenItBreaks) {
  connection_->connect_to(a_peer());
  const std::uint32_t its = number();
  fake().fail_call = "post_send";
  ASSERT_EQ(connection_->submit(*own_sends_->allocate()), Status());
  fake().fail_call.clear();
  ASSERT_EQ(shared_.submit(task()), Status());
  finish(0, its);
  engine_.progress();
  EXPECT_EQ(connection_->queue_pair(), nullptr);
  EXPECT_EQ(outcomes_.all, (Lines{"ok", "driver"}));
}

}  // namespace
}  // namespace offload::rdma
