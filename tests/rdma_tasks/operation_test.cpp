#include "rdma_tasks/operation.hpp"

#include <arpa/inet.h>

#include "tests/rdma_tasks/connection_fixture.hpp"

namespace offload::rdma {
namespace {

using core::Cause;
using core::Status;
using test::fake;

using OperationTest = ConnectionTest;

TEST_F(OperationTest, AReceiveTellsWhatCame) {
  start_connected();
  auto first = room(0, 10);
  auto second = room(100, 50);
  ASSERT_TRUE(first->append_chain(second));
  ReceiveTask& task = *receives_->allocate();
  task.destination = first.get();
  EXPECT_EQ(connection_.submit(task), Status());
  ASSERT_EQ(queue().receives.at(0).pieces.size(), 2U);
  EXPECT_EQ(queue().receives.at(0).pieces[1].length, 50U);
  ibv_wc told{};
  told.byte_len = 25;
  told.wc_flags = IBV_WC_WITH_IMM;
  told.imm_data = htonl(0x12345678);
  fake().finish_receive(queue(), told);
  turn();
  EXPECT_EQ(outcomes_.all, Lines{"ok"});
  EXPECT_EQ(task.length(), 25U);
  EXPECT_EQ(task.immediate(), 0x12345678U);
  EXPECT_FALSE(task.written_elsewhere());
  EXPECT_EQ(first->data().size(), 10U);
  EXPECT_EQ(first->next()->data().size(), 15U);

  first->reset();
  EXPECT_EQ(connection_.submit(task), Status());
  told = {};
  told.byte_len = 4096;
  told.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
  fake().finish_receive(queue(), told);
  turn();
  EXPECT_TRUE(task.written_elsewhere());
  EXPECT_EQ(task.length(), 4096U);
  EXPECT_EQ(task.immediate(), std::nullopt);
  EXPECT_TRUE(first->data().empty());
}

TEST_F(OperationTest, AFailureHasItsCauseUntilTheNextSubmission) {
  start_connected();
  ReceiveTask& task = *receives_->allocate();
  EXPECT_EQ(connection_.submit(task), Status());
  EXPECT_EQ(task.cause(), Cause{});
  ibv_wc completion{};
  completion.status = IBV_WC_LOC_LEN_ERR;
  completion.vendor_err = 0x88;
  fake().finish_receive(queue(), completion);
  turn();
  EXPECT_EQ(outcomes_.all, Lines{"io_failed"});
  EXPECT_EQ(task.cause(), (Cause{Cause::Domain::work_completion, IBV_WC_LOC_LEN_ERR, 0x88}));
  EXPECT_NE(task.explain().find("longer than the receive"), std::string::npos);
  connection_.stop();
  turn();
  start_connected();
  EXPECT_EQ(connection_.submit(task), Status());
  EXPECT_EQ(task.cause(), Cause{});
}

TEST_F(OperationTest, ReceivedBytesFillTheTailroomsInOrder) {
  auto first = room(0, 10);
  auto second = room(100, 10);
  ASSERT_TRUE(first->append_chain(second));
  append(first.get(), 4);
  EXPECT_EQ(first->data().size(), 4U);
  append(first.get(), 9);
  EXPECT_EQ(first->data().size(), 10U);
  EXPECT_EQ(first->next()->data().size(), 3U);
  append(first.get(), 100);  // no more than there is room for
  EXPECT_EQ(first->next()->data().size(), 10U);
  append(nullptr, 1);
}

}  // namespace
}  // namespace offload::rdma
