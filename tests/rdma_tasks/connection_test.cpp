#include "rdma_tasks/connection.hpp"

#include <algorithm>
#include <memory>

#include "tests/rdma_tasks/connection_fixture.hpp"
#include "tests/support/log_capture.hpp"
#include "tests/support/thrown.hpp"

namespace offload::rdma {
namespace {

using core::ErrorCode;
using core::Status;
using progress::Context;
using support::thrown_by;
using test::fake;

TEST_F(ConnectionTest, OptionsThatNameNoConnectionAreRefused) {
  const auto refused = [&](auto change) {
    ConnectionOptions options;
    change(options.queues);
    const SharedObjects objects{device_, domain_, registrar_, loop_};
    EXPECT_EQ(thrown_by([&] { const Connection connection(objects, options); }).code(),
              ErrorCode::invalid_value);
  };
  refused([](QueuePairOptions& queues) { queues.qp_type = QpType::ud; });
  refused([](QueuePairOptions& queues) { queues.max_send_wr = 0; });
  refused([](QueuePairOptions& queues) { queues.max_recv_wr = 0; });
  refused([](QueuePairOptions& queues) { queues.max_sge = 0; });
}

TEST_F(ConnectionTest, IsDescribedAndConnectedWhileItRuns) {
  EXPECT_EQ(thrown_by([&] { static_cast<void>(connection_.descriptor()); }).code(),
            ErrorCode::bad_state);
  EXPECT_EQ(thrown_by([&] { connection_.connect_to(a_peer()); }).code(), ErrorCode::bad_state);
  connection_.start();
  const auto descriptor = connection_.descriptor();
  EXPECT_EQ(descriptor.qp_num, 100U);
  EXPECT_EQ(to_string(descriptor.gid), "10.0.0.1");
  EXPECT_EQ(descriptor.max_dest_rd_atomic, 16);
  EXPECT_FALSE(connection_.connected());
  connection_.connect_to(a_peer());
  EXPECT_TRUE(connection_.connected());
  EXPECT_EQ(queue().attributes.max_rd_atomic, 4);  // what the peer takes
  EXPECT_EQ(thrown_by([&] { connection_.connect_to(a_peer()); }).code(), ErrorCode::bad_state);
  connection_.stop();
  EXPECT_EQ(fake().open["ibv_create_qp"], 0);
}

TEST_F(ConnectionTest, ItsUserIsToldWhenItIsConnectedAndWhenNot) {
  Lines told;
  connection_.set_connection_callback([&](Connection& connection, bool connected) {
    EXPECT_EQ(connection.connected(), connected);
    told.emplace_back(connected ? "connected" : "not");
  });
  connection_.start();
  EXPECT_EQ(thrown_by([&] { connection_.set_connection_callback({}); }).code(),
            ErrorCode::bad_state);
  EXPECT_TRUE(told.empty());
  connection_.connect_to(a_peer());
  EXPECT_EQ(told, Lines{"connected"});
  ASSERT_TRUE(send().ok());
  ASSERT_TRUE(send().ok());
  fake().finish_send(queue(), IBV_WC_RETRY_EXC_ERR);
  fake().finish_send(queue(), IBV_WC_WR_FLUSH_ERR);
  turn();
  EXPECT_EQ(told, (Lines{"connected", "not"}));  // once
  connection_.stop();
  turn();
  EXPECT_EQ(told.size(), 2U);
  connection_.start();
  connection_.connect_to(a_peer());
  connection_.stop();
  turn();
  EXPECT_EQ(told, (Lines{"connected", "not", "connected", "not"}));
  connection_.start();
  connection_.connect_to(a_peer());
  fake().fail_call = "post_send";
  ASSERT_TRUE(send().ok());
  turn();
  fake().fail_call.clear();
  EXPECT_EQ(told.size(), 6U);  // a post that fails
}

TEST_F(ConnectionTest, AStartThatFailsLeavesNothing) {
  fake().port.state = IBV_PORT_DOWN;
  EXPECT_EQ(thrown_by([&] { connection_.start(); }).code(), ErrorCode::not_connected);
  fake().port.state = IBV_PORT_ACTIVE;
  for (const char* call :
       {"ibv_query_port", "ibv_query_gid_table", "ibv_create_qp", "ibv_modify_qp"}) {
    fake().fail_call = call;
    EXPECT_EQ(thrown_by([&] { connection_.start(); }).code(), ErrorCode::io_failed) << call;
    EXPECT_EQ(fake().open["ibv_create_qp"], 0) << call;
    EXPECT_EQ(connection_.state(), Context::State::idle);
  }
  fake().fail_call.clear();
  connection_.start();
}

TEST_F(ConnectionTest, SendsWaitForThePeerAndReceivesDoNot) {
  connection_.start();
  EXPECT_EQ(send(), ErrorCode::not_connected);
  EXPECT_EQ(receive(), Status());
  connection_.connect_to(a_peer());
  EXPECT_EQ(send(), Status());
}

TEST_F(ConnectionTest, ABatchIsOneDoorbellAndOneCompletion) {
  start_connected();
  const int doorbells = fake().doorbells;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(send(false), Status());
  EXPECT_EQ(fake().doorbells, doorbells);
  EXPECT_EQ(connection_.flush(), Status());
  EXPECT_EQ(fake().doorbells, doorbells + 1);
  ASSERT_EQ(queue().sends.size(), 3U);
  for (int i = 0; i < 3; ++i) fake().finish_send(queue());
  EXPECT_EQ(fake().completions.size(), 1U);
  turn();
  EXPECT_EQ(outcomes_.all, (Lines{"ok", "ok", "ok"}));
}

TEST_F(ConnectionTest, AnErrorInABatchIsThatOfItsTaskAndWhatFollows) {
  start_connected();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(send(false), Status());
  EXPECT_EQ(connection_.flush(), Status());
  fake().finish_send(queue());
  fake().finish_send(queue(), IBV_WC_REM_ACCESS_ERR);
  fake().finish_send(queue(), IBV_WC_WR_FLUSH_ERR);
  fake().finish_send(queue(), IBV_WC_WR_FLUSH_ERR);
  turn();
  EXPECT_EQ(outcomes_.all, (Lines{"ok", "io_failed", "io_failed", "io_failed"}));
  const auto tasks = sends_->tasks();
  const auto failed = std::count_if(tasks.begin(), tasks.end(), [](const SendTask& task) {
    return task.cause() ==
               core::Cause{core::Cause::Domain::work_completion, IBV_WC_REM_ACCESS_ERR, 0x88} &&
           task.explain().find("its key or range is wrong") != std::string::npos;
  });
  EXPECT_EQ(failed, 1);
  EXPECT_FALSE(connection_.connected());
  EXPECT_EQ(send(), ErrorCode::not_connected);
  EXPECT_EQ(receive(), ErrorCode::not_connected);
}

TEST_F(ConnectionTest, AQueueThatIsFullSaysSoUntilOneEnds) {
  start_connected();
  for (int round = 0; round < 10; ++round) {
    outcomes_.all.clear();
    std::vector<SendTask*> out;
    for (int i = 0; i < 4; ++i) {
      out.push_back(sends_->allocate());
      EXPECT_EQ(connection_.submit(*out.back()), Status());
    }
    SendTask& refused = *sends_->allocate();
    EXPECT_EQ(connection_.submit(refused), ErrorCode::full);
    for (int i = 0; i < 4; ++i) fake().finish_send(queue());
    turn();
    EXPECT_EQ(outcomes_.all.size(), 4U);
    EXPECT_EQ(connection_.submit(refused), Status());
    fake().finish_send(queue());
    turn();
    for (SendTask* task : out) EXPECT_EQ(sends_->release(*task), Status());
    EXPECT_EQ(sends_->release(refused), Status());
  }
}

TEST_F(ConnectionTest, StopFlushesAndSaysShutdown) {
  start_connected();
  EXPECT_EQ(receive(), Status());
  EXPECT_EQ(send(), Status());
  EXPECT_EQ(send(false), Status());
  connection_.stop();
  EXPECT_EQ(connection_.state(), Context::State::stopping);
  turn();
  EXPECT_EQ(connection_.state(), Context::State::idle);
  EXPECT_EQ(outcomes_.all, (Lines{"shutdown", "shutdown", "shutdown"}));
  EXPECT_EQ(fake().open["ibv_create_qp"], 0);
  outcomes_.all.clear();
  start_connected();
  EXPECT_EQ(send(), Status());
  fake().finish_send(queue());
  turn();
  EXPECT_EQ(outcomes_.all, Lines{"ok"});
}

TEST_F(ConnectionTest, ACallbackMayStopIt) {
  start_connected();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(send(false), Status());
  EXPECT_EQ(connection_.flush(), Status());
  for (int i = 0; i < 4; ++i) fake().finish_send(queue());
  outcomes_.to_stop = &connection_;
  turn();
  EXPECT_EQ(outcomes_.all, (Lines{"ok", "ok", "ok", "ok"}));
  EXPECT_EQ(connection_.state(), Context::State::idle);
}

TEST_F(ConnectionTest, APostThatFailsBreaksItAndLosesNoTask) {
  start_connected();
  fake().fail_at = static_cast<int>(fake().calls.size()) + 1;  // the second of the batch
  for (int i = 0; i < 3; ++i) EXPECT_EQ(send(false), Status());
  EXPECT_EQ(connection_.flush(), Status());
  turn();
  EXPECT_EQ(outcomes_.all, (Lines{"driver", "driver", "driver"}));
  EXPECT_EQ(connection_.queue_pair(), nullptr);
  EXPECT_EQ(send(), ErrorCode::not_connected);
  EXPECT_EQ(thrown_by([&] { static_cast<void>(connection_.descriptor()); }).code(),
            ErrorCode::bad_state);
  connection_.stop();
  start_connected();
  EXPECT_EQ(send(), Status());
}

TEST_F(ConnectionTest, ACompletionQueueThatIsLostBreaksIt) {
  start_connected();
  EXPECT_EQ(send(), Status());
  EXPECT_EQ(receive(), Status());
  fake().fail_call = "poll_cq";
  turn();
  EXPECT_EQ(outcomes_.all, (Lines{"driver", "driver"}));
  EXPECT_FALSE(connection_.connected());
  // No call would report the end of an operation any more.
  fake().fail_call.clear();
  connection_.stop();
  EXPECT_EQ(thrown_by([&] { connection_.start(); }).code(), ErrorCode::driver);
}

TEST_F(ConnectionTest, ADeviceThatDoesNotFailTheQueuePairIsStoppedAllTheSame) {
  const support::LogCapture log;
  start_connected();
  EXPECT_EQ(send(), Status());
  fake().fail_call = "ibv_modify_qp";
  connection_.stop();
  EXPECT_EQ(connection_.state(), Context::State::idle);
  EXPECT_EQ(outcomes_.all, Lines{"shutdown"});
  EXPECT_TRUE(log.has("cannot change from RTS to ERR"));
}

TEST_F(ConnectionTest, WhatIsToldOfFormerWorkIsDropped) {
  start_connected();
  EXPECT_EQ(send(), Status());
  ibv_wc stale{};
  stale.wr_id = 3;  // of this connection, and nothing under way has that number
  fake().completions.push_back(stale);
  stale.wr_id = std::uint64_t{55} << 32;  // of a connection that is no more
  fake().completions.push_back(stale);
  turn();
  EXPECT_TRUE(outcomes_.all.empty());
  fake().finish_send(queue());
  turn();
  EXPECT_EQ(outcomes_.all, Lines{"ok"});

  connection_.stop();
  start_connected();
  EXPECT_EQ(send(), Status());
  stale.wr_id = 1;  // that send's number, and the tag of before
  fake().completions.push_back(stale);
  turn();
  EXPECT_EQ(outcomes_.all, Lines{"ok"});
  fake().finish_send(queue());
  turn();
  EXPECT_EQ(outcomes_.all, (Lines{"ok", "ok"}));
}

}  // namespace
}  // namespace offload::rdma
