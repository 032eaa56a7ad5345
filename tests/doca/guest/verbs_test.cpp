#include <chrono>
#include <thread>
#include <vector>

#include "rdma/verbs/gid.hpp"
#include "tests/doca/verbs/verbs_fixture.hpp"

/// Queue pairs of DOCA's verbs on the first RDMA device of the machine: by libibverbs, and by the
/// card's own commands, on the software card (docs/softcard.md) only.
namespace offload::doca {
namespace {

constexpr std::chrono::seconds kPatience(20);
constexpr std::size_t kHalf = 4096;
constexpr std::uint32_t kLength = 300;

/// One end: a queue pair with its own completion queues.
struct End {
  doca_verbs_cq* sends = nullptr;
  doca_verbs_cq* receives = nullptr;
  doca_verbs_qp* pair = nullptr;
};

/// Returns the next completion; one that has failed if there is none in time.
ibv_wc next(doca_verbs_cq* queue) {
  ibv_wc told{};
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  for (;;) {
    const int count = doca_verbs_bridge_poll_cq(queue, 1, &told);
    if (count == 1) return told;
    if (count < 0 || std::chrono::steady_clock::now() > deadline) {
      ADD_FAILURE() << "no completion: " << count;
      told.status = IBV_WC_GENERAL_ERR;
      return told;
    }
    std::this_thread::yield();
  }
}

/// `GetParam()`: whether the queues have an external UAR.
class VerbsSuite : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    open_device();
    ASSERT_EQ(doca_verbs_pd_create(context_, &pd_), DOCA_SUCCESS);
    ASSERT_EQ(doca_verbs_pd_as_doca_dev(pd_, &dev_), DOCA_SUCCESS);
    ibv_pd* native = nullptr;
    ASSERT_EQ(doca_rdma_bridge_get_dev_pd(dev_, &native), DOCA_SUCCESS);
    ASSERT_EQ(native, doca_verbs_bridge_verbs_pd_get_ibv_pd(pd_));
    memory_ = ibv_reg_mr(native, bytes_.data(), bytes_.size(),
                         IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
    ASSERT_NE(memory_, nullptr);
    if (GetParam()) {
      ASSERT_EQ(doca_uar_create(dev_, DOCA_UAR_ALLOCATION_TYPE_NONCACHE, &uar_), DOCA_SUCCESS);
    }
    std::vector<ibv_gid_entry> gids(16);
    const ssize_t count = ibv_query_gid_table(native->context, gids.data(), gids.size(), 0);
    ASSERT_GT(count, 0);
    gids.resize(static_cast<std::size_t>(count));
    const ibv_gid_entry gid = rdma::choose_gid(gids, {});
    address_ = make_address(context_, gid.gid.raw, static_cast<std::uint8_t>(gid.gid_index));
    one_ = make_end();
    other_ = make_end();
    connect(one_.pair, other_.pair);
  }
  void TearDown() override {
    end(one_);
    end(other_);
    EXPECT_EQ(doca_verbs_ah_attr_destroy(address_), DOCA_SUCCESS);
    if (uar_ != nullptr) {
      EXPECT_EQ(doca_uar_destroy(uar_), DOCA_SUCCESS);
    }
    if (memory_ != nullptr) {
      EXPECT_EQ(ibv_dereg_mr(memory_), 0);
    }
    EXPECT_EQ(doca_verbs_pd_destroy(pd_), DOCA_ERROR_IN_USE);
    EXPECT_EQ(doca_dev_close(dev_), DOCA_SUCCESS);
    EXPECT_EQ(doca_verbs_pd_destroy(pd_), DOCA_SUCCESS);
    EXPECT_EQ(doca_verbs_context_destroy(context_), DOCA_SUCCESS);
  }

  void open_device() {
    doca_devinfo** list = nullptr;
    std::uint32_t count = 0;
    ASSERT_EQ(doca_devinfo_create_list(&list, &count), DOCA_SUCCESS);
    for (std::uint32_t i = 0; i < count && context_ == nullptr; ++i) {
      char name[DOCA_DEVINFO_IBDEV_NAME_SIZE] = {};
      if (doca_devinfo_get_ibdev_name(list[i], name, sizeof name) != DOCA_SUCCESS) continue;
      EXPECT_EQ(doca_verbs_context_create(list[i], DOCA_VERBS_CONTEXT_CREATE_FLAGS_NONE, &context_),
                DOCA_SUCCESS);
    }
    EXPECT_EQ(doca_devinfo_destroy_list(list), DOCA_SUCCESS);
    ASSERT_NE(context_, nullptr) << "there is no RDMA device";
  }
  End make_end() {
    End made;
    made.sends = make_cq(context_, uar_);
    made.receives = make_cq(context_, uar_);
    made.pair = make_qp(context_, pd_, made.sends, made.receives, uar_);
    return made;
  }
  void connect(doca_verbs_qp* one, doca_verbs_qp* other) {
    QpAttributes attributes;
    attributes.set_peer(doca_verbs_qp_get_qpn(other), address_);
    attributes.connect(one);
    attributes.set_peer(doca_verbs_qp_get_qpn(one), address_);
    attributes.connect(other);
  }
  static void end(const End& of) {
    if (of.pair != nullptr) {
      EXPECT_EQ(doca_verbs_cq_destroy(of.sends), DOCA_ERROR_IN_USE);
      EXPECT_EQ(doca_verbs_qp_destroy(of.pair), DOCA_SUCCESS);
    }
    EXPECT_EQ(doca_verbs_cq_destroy(of.sends), DOCA_SUCCESS);
    EXPECT_EQ(doca_verbs_cq_destroy(of.receives), DOCA_SUCCESS);
  }

  [[nodiscard]] ibv_sge piece(std::size_t offset, std::uint32_t length) const {
    return {reinterpret_cast<std::uint64_t>(&bytes_[offset]), length, memory_->lkey};
  }
  /// A request with the bytes at the begin of the memory, for or from those at kHalf.
  ibv_send_wr request(ibv_wr_opcode opcode, std::uint64_t id, ibv_sge& from) const {
    ibv_send_wr made{};
    made.wr_id = id;
    made.sg_list = &from;
    made.num_sge = 1;
    made.opcode = opcode;
    made.send_flags = IBV_SEND_SIGNALED;
    made.wr.rdma = {reinterpret_cast<std::uint64_t>(&bytes_[kHalf]), memory_->rkey};
    return made;
  }
  static void post(doca_verbs_qp* pair, ibv_send_wr made) {
    ibv_send_wr* bad = nullptr;
    ASSERT_EQ(doca_verbs_bridge_post_send(pair, &made, &bad), 0);
    ASSERT_EQ(bad, nullptr);
  }
  /// A receive at other_ without a buffer, or with one of no bytes.
  void post_empty_receive(int pieces) const {
    ibv_sge none = piece(kHalf, 0);
    ibv_recv_wr made{};
    made.wr_id = 5;
    made.sg_list = &none;
    made.num_sge = pieces;
    ibv_recv_wr* bad = nullptr;
    ASSERT_EQ(doca_verbs_bridge_post_recv(other_.pair, &made, &bad), 0);
  }
  void post_receive(doca_verbs_qp* pair, std::uint64_t id, std::size_t offset) const {
    ibv_sge into = piece(offset, kLength);
    ibv_recv_wr made{id, nullptr, &into, 1};
    ibv_recv_wr* bad = nullptr;
    ASSERT_EQ(doca_verbs_bridge_post_recv(pair, &made, &bad), 0);
    ASSERT_EQ(bad, nullptr);
  }
  void expect(const ibv_wc& told, ibv_wc_opcode opcode, std::uint64_t id) const {
    EXPECT_EQ(told.status, IBV_WC_SUCCESS);
    EXPECT_EQ(told.opcode, opcode);
    EXPECT_EQ(told.wr_id, id);
  }
  void fill(std::size_t offset, std::uint8_t first) {
    for (std::size_t i = 0; i < kLength; ++i) {
      bytes_[offset + i] = static_cast<std::uint8_t>(first + i);
    }
  }
  [[nodiscard]] bool same(std::size_t a, std::size_t b) const {
    return std::memcmp(&bytes_[a], &bytes_[b], kLength) == 0;
  }

  std::vector<std::uint8_t> bytes_ = std::vector<std::uint8_t>(2 * kHalf);
  doca_verbs_context* context_ = nullptr;
  doca_verbs_pd* pd_ = nullptr;
  doca_dev* dev_ = nullptr;
  doca_uar* uar_ = nullptr;
  doca_verbs_ah_attr* address_ = nullptr;
  ibv_mr* memory_ = nullptr;
  End one_;
  End other_;
};

TEST_P(VerbsSuite, DataMovesInEachWay) {
  ibv_sge from = piece(0, kLength);
  fill(0, 1);
  post_receive(other_.pair, 7, kHalf);
  post(one_.pair, request(IBV_WR_SEND, 1, from));
  expect(next(one_.sends), IBV_WC_SEND, 1);
  const ibv_wc came = next(other_.receives);
  expect(came, IBV_WC_RECV, 7);
  EXPECT_EQ(came.byte_len, kLength);
  EXPECT_EQ(came.qp_num, doca_verbs_qp_get_qpn(other_.pair));
  EXPECT_TRUE(same(0, kHalf));

  fill(0, 50);
  post(one_.pair, request(IBV_WR_RDMA_WRITE, 2, from));
  expect(next(one_.sends), IBV_WC_RDMA_WRITE, 2);
  EXPECT_TRUE(same(0, kHalf));

  fill(kHalf, 99);
  post(other_.pair, request(IBV_WR_RDMA_READ, 3, from));
  expect(next(other_.sends), IBV_WC_RDMA_READ, 3);
  EXPECT_TRUE(same(0, kHalf));

  ibv_send_wr immediate = request(IBV_WR_RDMA_WRITE_WITH_IMM, 4, from);
  immediate.imm_data = 0x1234'5678;
  post_receive(other_.pair, 8, 0);
  post(one_.pair, immediate);
  expect(next(one_.sends), IBV_WC_RDMA_WRITE, 4);
  const ibv_wc told = next(other_.receives);
  expect(told, IBV_WC_RECV_RDMA_WITH_IMM, 8);
  EXPECT_EQ(told.wc_flags & IBV_WC_WITH_IMM, unsigned{IBV_WC_WITH_IMM});
  EXPECT_EQ(told.imm_data, 0x1234'5678U);
  EXPECT_EQ(doca_verbs_bridge_get_current_cq_ci(one_.sends), 3U);
}

/// The rings begin again; only the last request of a list asks for a completion. It has several
/// buffers, and so an entry of two blocks.
TEST_P(VerbsSuite, ListsOfRequestsGoRoundTheRing) {
  constexpr std::uint64_t kRounds = 100;
  std::array<ibv_sge, 6> pieces{};
  for (std::size_t i = 0; i < pieces.size(); ++i) pieces[i] = piece(50 * i, 50);
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    fill(0, static_cast<std::uint8_t>(round));
    ibv_send_wr last = request(IBV_WR_SEND, round, pieces[0]);
    last.num_sge = 6;
    ibv_send_wr first = request(IBV_WR_RDMA_WRITE, 0, pieces[0]);
    first.send_flags = 0;
    first.next = &last;
    post_receive(other_.pair, round, kHalf);
    ibv_send_wr* bad = nullptr;
    ASSERT_EQ(doca_verbs_bridge_post_send(one_.pair, &first, &bad), 0);
    expect(next(one_.sends), IBV_WC_SEND, round);
    expect(next(other_.receives), IBV_WC_RECV, round);
    ASSERT_TRUE(same(0, kHalf)) << round;
  }
}

TEST_P(VerbsSuite, AnImmediateNeedsNoBuffer) {
  ibv_sge from = piece(0, 8);
  for (const int pieces : {0, 1}) {
    post_empty_receive(pieces);
    post(one_.pair, request(IBV_WR_RDMA_WRITE_WITH_IMM, 1, from));
    expect(next(one_.sends), IBV_WC_RDMA_WRITE, 1);
    expect(next(other_.receives), IBV_WC_RECV_RDMA_WITH_IMM, 5);
  }
}

TEST_P(VerbsSuite, ARefusedRequestSaysWhich) {
  ibv_sge from = piece(0, 8);
  std::vector<ibv_sge> too_many(1000, from);
  ibv_send_wr refused = request(IBV_WR_SEND, 2, too_many[0]);
  refused.num_sge = 1000;
  ibv_send_wr first = request(IBV_WR_RDMA_WRITE, 1, from);
  first.next = &refused;
  ibv_send_wr* bad = nullptr;
  EXPECT_NE(doca_verbs_bridge_post_send(one_.pair, &first, &bad), 0);
  EXPECT_EQ(bad, &refused);
  expect(next(one_.sends), IBV_WC_RDMA_WRITE, 1);  // the one before it was posted
}

TEST_P(VerbsSuite, AnErrorIsToldAndTheRestIsFlushed) {
  ibv_sge from = piece(0, 8);
  ibv_send_wr wrong = request(IBV_WR_RDMA_WRITE, 1, from);
  wrong.wr.rdma.rkey ^= 0x5500;
  post_receive(one_.pair, 9, 0);
  post(one_.pair, wrong);
  const ibv_wc told = next(one_.sends);
  EXPECT_EQ(told.status, IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(told.wr_id, 1U);
  QpAttributes attributes;
  EXPECT_EQ(attributes.move(one_.pair, DOCA_VERBS_QP_STATE_ERR, DOCA_VERBS_QP_ATTR_NEXT_STATE),
            DOCA_SUCCESS);
  const ibv_wc flushed = next(one_.receives);
  EXPECT_EQ(flushed.status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(flushed.wr_id, 9U);
  ibv_send_wr late = request(IBV_WR_RDMA_WRITE, 2, from);
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(doca_verbs_bridge_post_send(one_.pair, &late, &bad), EINVAL);
  EXPECT_EQ(bad, &late);
}

INSTANTIATE_TEST_SUITE_P(Verbs, VerbsSuite, testing::Values(false));
INSTANTIATE_TEST_SUITE_P(Card, VerbsSuite, testing::Values(true));

/// Only queues with a UAR can do these.
class CardVerbsTest : public VerbsSuite {};
INSTANTIATE_TEST_SUITE_P(Card, CardVerbsTest, testing::Values(true));

TEST_P(CardVerbsTest, AReceiveWithoutBytesTakesNoData) {
  ibv_sge from = piece(0, 8);
  post_empty_receive(1);
  post(one_.pair, request(IBV_WR_SEND, 1, from));
  EXPECT_EQ(next(other_.receives).status, IBV_WC_LOC_LEN_ERR);
}

TEST_P(CardVerbsTest, AFullQueueTakesNoMore) {
  ibv_sge from = piece(0, 8);
  ibv_send_wr held = request(IBV_WR_RDMA_WRITE, 0, from);
  ASSERT_EQ(doca_verbs_bridge_set_wait_cq_pi_wr(other_.sends, 0, &held), DOCA_SUCCESS);
  post(one_.pair, held);
  ibv_send_wr made = request(IBV_WR_RDMA_WRITE, 1, from);
  ibv_send_wr* bad = nullptr;
  int posted = 0;
  while (posted < 100 && doca_verbs_bridge_post_send(one_.pair, &made, &bad) == 0) ++posted;
  EXPECT_EQ(posted, 31);  // 16 requests of two blocks each
  EXPECT_EQ(doca_verbs_bridge_post_send(one_.pair, &made, &bad), ENOMEM);
  EXPECT_EQ(bad, &made);
  post(other_.pair, request(IBV_WR_RDMA_WRITE, 2, from));  // ends the wait
  expect(next(one_.sends), IBV_WC_DRIVER1, 0);
  for (int i = 0; i < posted; ++i) expect(next(one_.sends), IBV_WC_RDMA_WRITE, 1);
  post(one_.pair, made);
  expect(next(one_.sends), IBV_WC_RDMA_WRITE, 1);
}

/// One pair of queues sends on what another has received, as verbs_wait_cq_wr does.
TEST_P(CardVerbsTest, AQueueWaitsForCompletionsOfAnother) {
  doca_verbs_cq* const shared = make_cq(context_, uar_);
  doca_verbs_qp* const sender = make_qp(context_, pd_, shared, nullptr, uar_, true);
  doca_verbs_qp* const receiver = make_qp(context_, pd_, nullptr, shared, uar_);
  connect(sender, receiver);
  ibv_sge first = piece(0, kLength);
  ibv_sge second = piece(1024, kLength);
  fill(0, 17);
  post_receive(receiver, 1, 1024);
  post_receive(other_.pair, 2, 2048);
  ibv_send_wr held{};
  const std::uint32_t index = doca_verbs_bridge_get_current_cq_ci(shared) + 2;
  ASSERT_EQ(doca_verbs_bridge_set_wait_cq_pi_wr(shared, index, &held), DOCA_SUCCESS);
  held.wr_id = 3;
  held.send_flags = IBV_SEND_SIGNALED;
  post(one_.pair, held);
  post(one_.pair, request(IBV_WR_SEND, 4, second));
  ibv_wc none{};
  const auto holds = [&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    return doca_verbs_bridge_poll_cq(one_.sends, 1, &none) == 0;
  };
  EXPECT_TRUE(holds());
  ibv_send_wr sent = request(IBV_WR_RDMA_WRITE, 6, first);
  sent.send_flags = 0;
  post(sender, sent);
  expect(next(shared), IBV_WC_RDMA_WRITE, 6);
  EXPECT_TRUE(holds());  // it waits for two more
  sent.opcode = IBV_WR_SEND;
  sent.wr_id = 5;
  post(sender, sent);
  expect(next(one_.sends), IBV_WC_DRIVER1, 3);
  expect(next(one_.sends), IBV_WC_SEND, 4);
  expect(next(other_.receives), IBV_WC_RECV, 2);
  EXPECT_TRUE(same(0, 2048));
  // Those of a queue pair that is gone are dropped.
  EXPECT_EQ(doca_verbs_qp_destroy(receiver), DOCA_SUCCESS);
  expect(next(shared), IBV_WC_SEND, 5);
  EXPECT_EQ(doca_verbs_bridge_poll_cq(shared, 1, &none), 0);
  EXPECT_EQ(doca_verbs_bridge_get_current_cq_ci(shared), 3U);
  EXPECT_EQ(doca_verbs_qp_destroy(sender), DOCA_SUCCESS);
  EXPECT_EQ(doca_verbs_cq_destroy(shared), DOCA_SUCCESS);
}

TEST_P(CardVerbsTest, WhatItHasNotIsRefused) {
  const auto refused = [&](auto set) {
    doca_verbs_qp_init_attr* const attributes =
        make_qp_attributes(pd_, one_.sends, one_.receives, uar_);
    EXPECT_EQ(set(attributes), DOCA_SUCCESS);
    doca_verbs_qp* pair = nullptr;
    const doca_error_t result = doca_verbs_qp_create(context_, attributes, &pair);
    EXPECT_EQ(doca_verbs_qp_init_attr_destroy(attributes), DOCA_SUCCESS);
    return result;
  };
  EXPECT_EQ(
      refused([](auto* each) { return doca_verbs_qp_init_attr_set_receive_max_sges(each, 2); }),
      DOCA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(
      refused([](auto* each) { return doca_verbs_qp_init_attr_set_max_inline_data(each, 1); }),
      DOCA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(refused([](auto* each) { return doca_verbs_qp_init_attr_set_sq_wr(each, 40000); }),
            DOCA_ERROR_INVALID_VALUE);
  doca_verbs_cq* const without = make_cq(context_);
  EXPECT_EQ(refused([&](auto* each) { return doca_verbs_qp_init_attr_set_send_cq(each, without); }),
            DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_verbs_cq_destroy(without), DOCA_SUCCESS);
  QpAttributes attributes;
  EXPECT_EQ(attributes.move(one_.pair, DOCA_VERBS_QP_STATE_RST, DOCA_VERBS_QP_ATTR_NEXT_STATE),
            DOCA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(attributes.move(one_.pair, DOCA_VERBS_QP_STATE_INIT, kInitMask), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_uar_destroy(uar_), DOCA_ERROR_IN_USE);
}

}  // namespace
}  // namespace offload::doca
