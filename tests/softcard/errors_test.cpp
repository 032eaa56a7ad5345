#include <fcntl.h>

#include <algorithm>

#include "tests/softcard/fixture.hpp"

/// Operations that a card refuses, as the real libmlx5 reports them.
namespace offload::softcard::test {
namespace {

class ErrorTest : public SoftcardTest {
 protected:
  ErrorTest() { EXPECT_EQ(fcntl(device_->async_fd, F_SETFL, O_NONBLOCK), 0); }

  /// `completion` has failed so, what is posted behind it is flushed, and the peer's event is
  /// `event`, if there is one.
  void expect_failed(const ibv_wc& completion, ibv_wc_status status,
                     std::optional<ibv_event_type> event = std::nullopt) {
    EXPECT_EQ(ibv_wc_status_str(completion.status), std::string(ibv_wc_status_str(status)));
    ibv_sge piece = here_.piece(0, 8);
    ASSERT_EQ(one_.post(remote_work(IBV_WR_RDMA_WRITE, there_, 0, 77), {&piece, 1}), 0);
    const auto flushed = one_.next_sent();
    EXPECT_EQ(flushed.status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(flushed.wr_id, 77U);
    EXPECT_EQ(one_.state(), IBV_QPS_ERR);
    if (!event) return;
    const auto told = next_event();
    ASSERT_TRUE(told.has_value());
    EXPECT_EQ(ibv_event_type_str(told->event_type), std::string(ibv_event_type_str(*event)));
    EXPECT_EQ(told->element.qp, other_.get());
    EXPECT_EQ(other_.state(), IBV_QPS_ERR);
  }
};

TEST_F(ErrorTest, AWrongLocalKey) {
  ibv_sge piece = here_.piece(0, 8);
  piece.lkey += 0x100;  // there is no such key, or it is another memory's
  expect_failed(go(remote_work(IBV_WR_RDMA_WRITE, there_, 0), {piece}), IBV_WC_LOC_PROT_ERR);
}

TEST_F(ErrorTest, BeyondTheLocalMemory) {
  expect_failed(go(remote_work(IBV_WR_RDMA_WRITE, there_, 0), {here_.piece(kBytes - 4, 8)}),
                IBV_WC_LOC_PROT_ERR);
}

TEST_F(ErrorTest, AReadIntoMemoryThatItsOwnerOnlyReads) {
  Memory constant(domain_.get(), 64, 0);
  expect_failed(go(remote_work(IBV_WR_RDMA_READ, there_, 0), {constant.piece(0, 8)}),
                IBV_WC_LOC_PROT_ERR);
}

TEST_F(ErrorTest, AWrongRemoteKey) {
  auto request = remote_work(IBV_WR_RDMA_WRITE, there_, 0);
  request.wr.rdma.rkey = 0xfff'ff00;
  expect_failed(go(request, {here_.piece(0, 8)}), IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
}

// The key of the memory here is valid, but not for the addresses of the memory there.
TEST_F(ErrorTest, TheRemoteKeyOfAnotherMemory) {
  there_.fill(1);
  const auto before = there_.word(0);
  auto request = remote_work(IBV_WR_RDMA_WRITE, there_, 0);
  request.wr.rdma.rkey = here_.rkey();
  expect_failed(go(request, {here_.piece(0, 8)}), IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
  EXPECT_EQ(there_.word(0), before);
}

TEST_F(ErrorTest, BeyondTheRemoteMemory) {
  expect_failed(go(remote_work(IBV_WR_RDMA_WRITE, there_, kBytes - 4), {here_.piece(0, 8)}),
                IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
}

TEST_F(ErrorTest, AMemoryThatPeersOnlyRead) {
  Memory readable(domain_.get(), 64, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
  EXPECT_EQ(go(remote_work(IBV_WR_RDMA_READ, readable, 0), {here_.piece(0, 8)}).status,
            IBV_WC_SUCCESS);
  expect_failed(go(remote_work(IBV_WR_RDMA_WRITE, readable, 0), {here_.piece(0, 8)}),
                IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
}

TEST_F(ErrorTest, AMemoryOfAnotherDomain) {
  const auto domain = held(ibv_alloc_pd(device_.get()), ibv_dealloc_pd, "a domain");
  const Memory foreign(domain.get(), 64);
  expect_failed(go(remote_work(IBV_WR_RDMA_WRITE, foreign, 0), {here_.piece(0, 8)}),
                IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
}

TEST_F(ErrorTest, AQueuePairThatGivesNoAccess) {
  ibv_qp_attr attributes{};
  attributes.qp_access_flags = IBV_ACCESS_REMOTE_READ;
  other_.change(attributes, IBV_QP_ACCESS_FLAGS);
  expect_failed(go(remote_work(IBV_WR_RDMA_WRITE, there_, 0), {here_.piece(0, 8)}),
                IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
}

TEST_F(ErrorTest, AnAtomicAcrossWords) {
  expect_failed(go(atomic_work(IBV_WR_ATOMIC_FETCH_AND_ADD, there_, 4, 1, 0), {here_.piece(0, 8)}),
                IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
}

TEST_F(ErrorTest, AMessageThatIsLongerThanItsReceive) {
  ASSERT_EQ(other_.post_receive(1, {there_.piece(0, 16)}), 0);
  ASSERT_EQ(other_.post_receive(2, {there_.piece(0, 16)}), 0);
  expect_failed(go(work(IBV_WR_SEND), {here_.piece(0, 17)}), IBV_WC_REM_INV_REQ_ERR,
                IBV_EVENT_QP_REQ_ERR);
  const auto failed = other_.next_came();
  EXPECT_EQ(failed.status, IBV_WC_LOC_LEN_ERR);
  EXPECT_EQ(failed.wr_id, 1U);
  const auto flushed = other_.next_came();
  EXPECT_EQ(flushed.status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(flushed.wr_id, 2U);
}

TEST_F(ErrorTest, AReceiveWithAWrongKey) {
  ibv_sge piece = there_.piece(0, 16);
  piece.lkey = 0xfff'ff00;
  ASSERT_EQ(other_.post_receive(1, {piece}), 0);
  expect_failed(go(work(IBV_WR_SEND), {here_.piece(0, 8)}), IBV_WC_REM_OP_ERR, IBV_EVENT_QP_FATAL);
  EXPECT_EQ(other_.next_came().status, IBV_WC_LOC_PROT_ERR);
}

TEST_F(ErrorTest, APeerThatDoesNotAnswer) {
  other_.fail();
  expect_failed(go(remote_work(IBV_WR_RDMA_WRITE, there_, 0), {here_.piece(0, 8)}),
                IBV_WC_RETRY_EXC_ERR);
}

// The number before the expected one would be that of a duplicate, which a responder acknowledges.
TEST_F(ErrorTest, ASequenceNumberBehindTheExpectedOne) {
  Pair from(domain_.get(), {});
  Pair to(domain_.get(), {});
  from.connect(to.number(), {.psn = 7});
  to.connect(from.number(), {.psn = 6});
  ibv_sge piece = here_.piece(0, 8);
  ASSERT_EQ(from.post(remote_work(IBV_WR_RDMA_WRITE, there_, 0), {&piece, 1}), 0);
  EXPECT_EQ(from.next_sent().status, IBV_WC_RETRY_EXC_ERR);
}

TEST_F(ErrorTest, AReceiverThatIsNeverReady) {
  Pair from(domain_.get(), {});
  Pair to(domain_.get(), {});
  from.connect(to.number(), {.rnr_retries = 3});
  to.connect(from.number());
  ibv_sge piece = here_.piece(0, 8);
  ASSERT_EQ(from.post(work(IBV_WR_SEND), {&piece, 1}), 0);
  EXPECT_EQ(from.next_sent().status, IBV_WC_RNR_RETRY_EXC_ERR);
}

TEST_F(ErrorTest, AReceiverThatIsReadyLater) {
  here_.fill(9);
  ibv_sge piece = here_.piece(0, 8);
  ASSERT_EQ(one_.post(work(IBV_WR_SEND), {&piece, 1}), 0);
  ibv_wc none{};
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(ibv_poll_cq(one_.sent(), 1, &none), 0);
  ASSERT_EQ(other_.post_receive(5, {there_.piece(0, 8)}), 0);
  EXPECT_EQ(other_.next_came().wr_id, 5U);
  EXPECT_EQ(one_.next_sent().status, IBV_WC_SUCCESS);
  EXPECT_EQ(there_.word(0), here_.word(0));
}

TEST_F(ErrorTest, AllThatIsPostedIsFlushed) {
  for (std::uint64_t i = 0; i < 10; ++i) {
    ASSERT_EQ(other_.post_receive(i, {there_.piece(0, 8)}), 0);
  }
  other_.fail();
  for (std::uint64_t i = 10; i < 20; ++i) {
    ASSERT_EQ(other_.post_receive(i, {there_.piece(0, 8)}), 0);
    ibv_sge piece = here_.piece(0, 8);
    ASSERT_EQ(other_.post(work(IBV_WR_SEND, i), {&piece, 1}), 0);
  }
  for (std::uint64_t i = 0; i < 20; ++i) {
    const auto flushed = other_.next_came();
    ASSERT_EQ(flushed.status, IBV_WC_WR_FLUSH_ERR);
    ASSERT_EQ(flushed.wr_id, i);
    if (i < 10) continue;
    const auto sent = other_.next_sent();
    ASSERT_EQ(sent.status, IBV_WC_WR_FLUSH_ERR);
    ASSERT_EQ(sent.wr_id, i);
  }
}

TEST_F(ErrorTest, TheLastOfSharedReceivesIsAnEvent) {
  ibv_srq_init_attr wanted{};
  wanted.attr = {16, 1, 0};
  const auto shared = held(ibv_create_srq(domain_.get(), &wanted), ibv_destroy_srq, "receives");
  PairOptions options;
  options.shared = shared.get();
  Pair pair(domain_.get(), options);
  pair.connect(pair.number());
  pair.fail();
  const auto event = next_event();
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
  EXPECT_EQ(event->element.qp, pair.get());
}

TEST_F(ErrorTest, ACompletionQueueThatIsOverrun) {
  Pair from(domain_.get(), {}, 3);
  Pair to(domain_.get(), {});
  from.connect(to.number());
  to.connect(from.number());
  for (int i = 0; i < 5; ++i) {
    ibv_sge piece = here_.piece(0, 8);
    ASSERT_EQ(from.post(remote_work(IBV_WR_RDMA_WRITE, there_, 0), {&piece, 1}), 0);
  }
  bool of_queue = false;
  bool of_pair = false;
  for (int i = 0; i < 2; ++i) {
    const auto event = next_event();
    ASSERT_TRUE(event.has_value());
    of_queue =
        of_queue || (event->event_type == IBV_EVENT_CQ_ERR && event->element.cq == from.sent());
    of_pair =
        of_pair || (event->event_type == IBV_EVENT_QP_FATAL && event->element.qp == from.get());
  }
  EXPECT_TRUE(of_queue);
  EXPECT_TRUE(of_pair);
}

TEST_F(ErrorTest, AStateThatDoesNotFollow) {
  const Pair pair(domain_.get(), {});
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTS;
  EXPECT_EQ(ibv_modify_qp(pair.get(), &attributes, IBV_QP_STATE), EINVAL);
  EXPECT_EQ(pair.state(), IBV_QPS_INIT);
}

TEST_F(ErrorTest, WhatTheDeviceDoesNotHave) {
  ibv_qp_init_attr attributes{};
  attributes.send_cq = attributes.recv_cq = one_.sent();
  attributes.qp_type = IBV_QPT_UD;
  attributes.cap = {16, 16, 1, 1, 0};
  EXPECT_EQ(ibv_create_qp(domain_.get(), &attributes), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  EXPECT_EQ(ibv_reg_mr(domain_.get(), nullptr, 4096, IBV_ACCESS_LOCAL_WRITE), nullptr);
  EXPECT_EQ(errno, EFAULT);
}

}  // namespace
}  // namespace offload::softcard::test
