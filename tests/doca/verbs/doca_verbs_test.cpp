#include <infiniband/mlx5dv.h>

#include <optional>
#include <utility>
#include <vector>

#include "tests/doca/verbs/verbs_fixture.hpp"
#include "tests/rdma/fake_fixture.hpp"

/// Replaces the function of libmlx5: the fake device is no card of it.
bool mlx5dv_is_supported(ibv_device*) {
  return false;
}

namespace offload::doca {
namespace {

using rdma::test::fake;
using rdma::test::FakeQueuePair;

constexpr doca_error_t kInvalid = DOCA_ERROR_INVALID_VALUE;

/// The C interface in front of a fake libibverbs, with objects of an imported device.
class DocaVerbsTest : public rdma::FakeDeviceTest {
 protected:
  DocaVerbsTest() {
    int count = 0;
    native_ = ibv_open_device(*(ibv_get_device_list)(&count));
    native_pd_ = ibv_alloc_pd(native_);
    EXPECT_EQ(doca_verbs_bridge_verbs_context_import(native_, DOCA_VERBS_CONTEXT_CREATE_FLAGS_NONE,
                                                     &context_),
              DOCA_SUCCESS);
    EXPECT_EQ(doca_verbs_bridge_verbs_pd_import(native_pd_, &pd_), DOCA_SUCCESS);
    cq_ = make_cq(context_);
  }
  ~DocaVerbsTest() override {
    EXPECT_EQ(doca_verbs_cq_destroy(cq_), DOCA_SUCCESS);
    EXPECT_EQ(doca_verbs_pd_destroy(pd_), DOCA_SUCCESS);
    EXPECT_EQ(doca_verbs_context_destroy(context_), DOCA_SUCCESS);
    EXPECT_EQ(ibv_dealloc_pd(native_pd_), 0);
    EXPECT_EQ(ibv_close_device(native_), 0);
  }
  /// The result of a creation with attributes that `set` changes.
  template <class Set>
  doca_error_t create_with(const Set& set) {
    doca_verbs_qp_init_attr* const attributes = make_qp_attributes(pd_, cq_, cq_);
    set(attributes);
    doca_verbs_qp* pair = nullptr;
    const doca_error_t result = doca_verbs_qp_create(context_, attributes, &pair);
    if (pair != nullptr) {
      EXPECT_EQ(doca_verbs_qp_destroy(pair), DOCA_SUCCESS);
    }
    EXPECT_EQ(doca_verbs_qp_init_attr_destroy(attributes), DOCA_SUCCESS);
    return result;
  }

  ibv_context* native_ = nullptr;
  ibv_pd* native_pd_ = nullptr;
  doca_verbs_context* context_ = nullptr;
  doca_verbs_pd* pd_ = nullptr;
  doca_verbs_cq* cq_ = nullptr;
};

TEST_F(DocaVerbsTest, NullIsRefused) {
  EXPECT_EQ(doca_verbs_context_create(nullptr, 0, &context_), kInvalid);
  EXPECT_EQ(doca_verbs_context_destroy(nullptr), kInvalid);
  EXPECT_EQ(doca_verbs_bridge_verbs_context_import(nullptr, 0, &context_), kInvalid);
  EXPECT_EQ(doca_verbs_bridge_verbs_context_import(native_, 1, &context_), kInvalid);
  EXPECT_EQ(doca_verbs_bridge_verbs_pd_import(nullptr, &pd_), kInvalid);
  EXPECT_EQ(doca_verbs_bridge_verbs_pd_get_ibv_pd(nullptr), nullptr);
  EXPECT_EQ(doca_verbs_pd_create(nullptr, &pd_), kInvalid);
  EXPECT_EQ(doca_verbs_pd_destroy(nullptr), kInvalid);
  EXPECT_EQ(doca_verbs_pd_as_doca_dev(pd_, nullptr), kInvalid);
  EXPECT_EQ(doca_rdma_bridge_get_dev_pd(nullptr, &native_pd_), kInvalid);
  EXPECT_EQ(doca_uar_create(nullptr, DOCA_UAR_ALLOCATION_TYPE_NONCACHE, nullptr), kInvalid);
  EXPECT_EQ(doca_uar_destroy(nullptr), kInvalid);
  EXPECT_EQ(doca_verbs_cq_create(context_, nullptr, &cq_), kInvalid);
  EXPECT_EQ(doca_verbs_cq_destroy(nullptr), kInvalid);
  EXPECT_EQ(doca_verbs_qp_create(context_, nullptr, nullptr), kInvalid);
  EXPECT_EQ(doca_verbs_qp_destroy(nullptr), kInvalid);
  EXPECT_EQ(doca_verbs_qp_get_qpn(nullptr), 0U);
  EXPECT_EQ(doca_verbs_qp_modify(nullptr, nullptr, 0), kInvalid);
  EXPECT_EQ(doca_verbs_ah_attr_create(nullptr, nullptr), kInvalid);
  EXPECT_EQ(doca_verbs_cq_attr_create(nullptr), kInvalid);
  EXPECT_EQ(doca_verbs_cq_attr_destroy(nullptr), kInvalid);
  EXPECT_EQ(doca_verbs_cq_attr_set_cq_size(nullptr, 1), kInvalid);
  EXPECT_EQ(doca_verbs_ah_attr_set_hop_limit(nullptr, 1), kInvalid);
  EXPECT_EQ(doca_verbs_ah_attr_set_gid(nullptr, {}), kInvalid);
  EXPECT_EQ(doca_verbs_qp_attr_set_rq_psn(nullptr, 1), kInvalid);
  EXPECT_EQ(doca_verbs_qp_attr_set_ah_attr(nullptr, nullptr), kInvalid);
  EXPECT_EQ(doca_verbs_bridge_post_send(nullptr, nullptr, nullptr), EINVAL);
  EXPECT_EQ(doca_verbs_bridge_post_recv(nullptr, nullptr, nullptr), EINVAL);
  EXPECT_LT(doca_verbs_bridge_poll_cq(nullptr, 1, nullptr), 0);
  EXPECT_EQ(doca_verbs_bridge_get_current_cq_ci(nullptr), 0U);
  EXPECT_EQ(doca_verbs_bridge_set_wait_cq_pi_wr(nullptr, 0, nullptr), kInvalid);
}

TEST_F(DocaVerbsTest, ValuesThatNoDeviceAllowsAreRefused) {
  const QpAttributes attributes;
  doca_verbs_qp_attr* const qp = attributes.get();
  EXPECT_EQ(doca_verbs_qp_attr_set_port_num(qp, 0), kInvalid);
  EXPECT_EQ(doca_verbs_qp_attr_set_port_num(qp, 256), kInvalid);
  EXPECT_EQ(doca_verbs_qp_attr_set_rq_psn(qp, 1U << 24), kInvalid);
  EXPECT_EQ(doca_verbs_qp_attr_set_sq_psn(qp, 1U << 24), kInvalid);
  EXPECT_EQ(doca_verbs_qp_attr_set_dest_qp_num(qp, 1U << 24), kInvalid);
  EXPECT_EQ(doca_verbs_qp_attr_set_retry_cnt(qp, 8), kInvalid);
  EXPECT_EQ(doca_verbs_qp_attr_set_rnr_retry(qp, 8), kInvalid);
  EXPECT_EQ(doca_verbs_qp_attr_set_ack_timeout(qp, 32), kInvalid);
  EXPECT_EQ(doca_verbs_qp_attr_set_min_rnr_timer(qp, 32), kInvalid);
  EXPECT_EQ(doca_verbs_qp_attr_set_path_mtu(qp, static_cast<doca_mtu_size>(5)), kInvalid);
  EXPECT_EQ(doca_verbs_qp_attr_set_next_state(qp, static_cast<doca_verbs_qp_state>(5)), kInvalid);
  EXPECT_EQ(doca_verbs_qp_attr_set_ah_attr(qp, nullptr), kInvalid);
  doca_verbs_cq_attr* cq = nullptr;
  ASSERT_EQ(doca_verbs_cq_attr_create(&cq), DOCA_SUCCESS);
  EXPECT_EQ(doca_verbs_cq_attr_set_cq_size(cq, 0), kInvalid);
  EXPECT_EQ(doca_verbs_cq_attr_set_entry_size(cq, static_cast<doca_verbs_cq_entry_size>(32)),
            kInvalid);
  EXPECT_EQ(doca_verbs_cq_attr_set_external_uar(cq, nullptr), kInvalid);
  doca_verbs_cq* without_size = nullptr;
  EXPECT_EQ(doca_verbs_cq_create(context_, cq, &without_size), kInvalid);
  EXPECT_EQ(doca_verbs_cq_attr_set_cq_size(cq, 8), DOCA_SUCCESS);
  EXPECT_EQ(doca_verbs_cq_attr_set_external_datapath_en(cq, 1), DOCA_SUCCESS);
  EXPECT_EQ(doca_verbs_cq_create(context_, cq, &without_size), kInvalid);  // without a UMEM
  EXPECT_EQ(doca_verbs_cq_attr_destroy(cq), DOCA_SUCCESS);
  doca_verbs_ah_attr* const address = make_address(context_, fake().gids[0].gid.raw, 1);
  EXPECT_EQ(doca_verbs_ah_attr_set_addr_type(address, static_cast<doca_verbs_addr_type>(3)),
            kInvalid);
  EXPECT_EQ(doca_verbs_ah_attr_set_dlid(address, 1U << 16), kInvalid);
  EXPECT_EQ(doca_verbs_ah_attr_destroy(address), DOCA_SUCCESS);
}

TEST_F(DocaVerbsTest, AQueuePairNeedsItsObjects) {
  EXPECT_EQ(create_with([](auto*) {}), DOCA_SUCCESS);
  const auto without = [&](doca_verbs_pd* pd, doca_verbs_cq* queue) {
    doca_verbs_qp_init_attr* attributes = nullptr;
    EXPECT_EQ(doca_verbs_qp_init_attr_create(&attributes), DOCA_SUCCESS);
    if (pd != nullptr) {
      EXPECT_EQ(doca_verbs_qp_init_attr_set_pd(attributes, pd), DOCA_SUCCESS);
    }
    if (queue != nullptr) {
      EXPECT_EQ(doca_verbs_qp_init_attr_set_receive_cq(attributes, queue), DOCA_SUCCESS);
    }
    EXPECT_EQ(doca_verbs_qp_init_attr_set_sq_wr(attributes, 1), DOCA_SUCCESS);
    doca_verbs_qp* pair = nullptr;
    const doca_error_t result = doca_verbs_qp_create(context_, attributes, &pair);
    EXPECT_EQ(doca_verbs_qp_init_attr_destroy(attributes), DOCA_SUCCESS);
    return result;
  };
  EXPECT_EQ(without(nullptr, cq_), kInvalid);
  EXPECT_EQ(without(pd_, nullptr), kInvalid);
  EXPECT_EQ(without(pd_, cq_), kInvalid);  // it has sends, but only a queue for receives
  EXPECT_EQ(create_with([](auto* each) {
              EXPECT_EQ(doca_verbs_qp_init_attr_set_external_datapath_en(each, 1), DOCA_SUCCESS);
            }),
            kInvalid);  // its queues of completions have none
  EXPECT_EQ(create_with([](auto* each) {
              EXPECT_EQ(doca_verbs_qp_init_attr_set_qp_type(each, 1), kInvalid);
              EXPECT_EQ(doca_verbs_qp_init_attr_set_pd(each, nullptr), kInvalid);
              EXPECT_EQ(doca_verbs_qp_init_attr_set_external_uar(each, nullptr), kInvalid);
            }),
            DOCA_SUCCESS);
  ibv_context* const native = ibv_open_device(native_->device);
  doca_verbs_context* another = nullptr;
  EXPECT_EQ(doca_verbs_bridge_verbs_context_import(native, 0, &another), DOCA_SUCCESS);
  doca_verbs_cq* const foreign = make_cq(another);
  doca_verbs_pd* foreign_pd = nullptr;
  EXPECT_EQ(doca_verbs_pd_create(another, &foreign_pd), DOCA_SUCCESS);
  EXPECT_EQ(create_with([&](auto* each) {
              EXPECT_EQ(doca_verbs_qp_init_attr_set_send_cq(each, foreign), DOCA_SUCCESS);
            }),
            kInvalid);
  EXPECT_EQ(create_with([&](auto* each) {
              EXPECT_EQ(doca_verbs_qp_init_attr_set_pd(each, foreign_pd), DOCA_SUCCESS);
            }),
            kInvalid);
  EXPECT_EQ(doca_verbs_context_destroy(another), DOCA_ERROR_IN_USE);
  EXPECT_EQ(doca_verbs_cq_destroy(foreign), DOCA_SUCCESS);
  EXPECT_EQ(doca_verbs_pd_destroy(foreign_pd), DOCA_SUCCESS);
  EXPECT_EQ(doca_verbs_context_destroy(another), DOCA_SUCCESS);
  EXPECT_EQ(ibv_close_device(native), 0);
  fake().fail_call = "ibv_create_qp";
  fake().fail_with = EOPNOTSUPP;
  EXPECT_EQ(create_with([](auto*) {}), DOCA_ERROR_NOT_SUPPORTED);
}

// A program may use new attributes for each step.
TEST_F(DocaVerbsTest, ThePortOfAPathIsThatOfInit) {
  doca_verbs_qp* const pair = make_qp(context_, pd_, cq_, cq_);
  doca_verbs_ah_attr* const address = make_address(context_, fake().gids[0].gid.raw, 3);
  const QpAttributes first;
  EXPECT_EQ(doca_verbs_qp_attr_set_port_num(first.get(), 2), DOCA_SUCCESS);
  EXPECT_EQ(doca_verbs_qp_attr_set_next_state(first.get(), DOCA_VERBS_QP_STATE_INIT), DOCA_SUCCESS);
  EXPECT_EQ(doca_verbs_qp_modify(pair, first.get(), kInitMask), DOCA_SUCCESS);
  QpAttributes second;
  second.set_peer(77, address);
  EXPECT_EQ(second.move(pair, DOCA_VERBS_QP_STATE_RTR, kReceiveMask), DOCA_SUCCESS);
  EXPECT_EQ(fake().queue_pairs.at(0)->modified.at(1).ah_attr.port_num, 2);
  EXPECT_EQ(doca_verbs_qp_destroy(pair), DOCA_SUCCESS);
  EXPECT_EQ(doca_verbs_ah_attr_destroy(address), DOCA_SUCCESS);
}

TEST_F(DocaVerbsTest, AttributesReachTheDevice) {
  doca_verbs_qp* const pair = make_qp(context_, pd_, cq_, cq_);
  const FakeQueuePair& native = *fake().queue_pairs.at(0);
  EXPECT_EQ(doca_verbs_qp_get_qpn(pair), native.native.qp_num);
  EXPECT_EQ(native.initial.cap.max_send_wr, 16U);
  EXPECT_EQ(native.initial.cap.max_recv_wr, 16U);
  EXPECT_EQ(native.initial.cap.max_send_sge, 6U);
  EXPECT_EQ(native.initial.sq_sig_all, 0);
  doca_verbs_qp* const signaled = make_qp(context_, pd_, cq_, cq_, nullptr, true);
  EXPECT_EQ(fake().queue_pairs.at(1)->initial.sq_sig_all, 1);
  EXPECT_EQ(doca_verbs_qp_destroy(signaled), DOCA_SUCCESS);
  doca_verbs_ah_attr* const address = make_address(context_, fake().gids[0].gid.raw, 3);
  QpAttributes attributes;
  attributes.set_peer(77, address);
  // The address was copied.
  EXPECT_EQ(doca_verbs_ah_attr_set_sgid_index(address, 9), DOCA_SUCCESS);
  attributes.connect(pair);
  ASSERT_EQ(native.modified.size(), 3U);
  const ibv_qp_attr& init = native.modified[0];
  EXPECT_EQ(init.qp_state, IBV_QPS_INIT);
  EXPECT_EQ(init.port_num, 1);
  EXPECT_EQ(init.qp_access_flags, unsigned{IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ});
  const ibv_qp_attr& receive = native.modified[1];
  EXPECT_EQ(receive.qp_state, IBV_QPS_RTR);
  EXPECT_EQ(receive.dest_qp_num, 77U);
  EXPECT_EQ(receive.rq_psn, 0x1234U);
  EXPECT_EQ(receive.path_mtu, IBV_MTU_1024);
  EXPECT_EQ(receive.min_rnr_timer, 1);
  EXPECT_EQ(receive.max_dest_rd_atomic, 1);
  EXPECT_EQ(receive.ah_attr.is_global, 1);
  EXPECT_EQ(receive.ah_attr.port_num, 1);
  EXPECT_EQ(receive.ah_attr.grh.sgid_index, 3);
  EXPECT_EQ(receive.ah_attr.grh.hop_limit, 255);
  EXPECT_EQ(receive.ah_attr.grh.traffic_class, 8);
  EXPECT_EQ(std::memcmp(receive.ah_attr.grh.dgid.raw, fake().gids[0].gid.raw, 16), 0);
  const ibv_qp_attr& send = native.modified[2];
  EXPECT_EQ(send.qp_state, IBV_QPS_RTS);
  EXPECT_EQ(send.sq_psn, 0x1234U);
  EXPECT_EQ(send.timeout, 14);
  EXPECT_EQ(send.retry_cnt, 5);
  EXPECT_EQ(send.rnr_retry, 7);
  EXPECT_EQ(send.max_rd_atomic, 1);
  EXPECT_EQ(doca_verbs_ah_attr_destroy(address), DOCA_SUCCESS);
  EXPECT_EQ(doca_verbs_qp_destroy(pair), DOCA_SUCCESS);
}

TEST_F(DocaVerbsTest, RightsAndAddressesAreThoseOfTheMask) {
  doca_verbs_qp* const pair = make_qp(context_, pd_, cq_, cq_);
  const FakeQueuePair& native = *fake().queue_pairs.at(0);
  doca_verbs_ah_attr* const address = make_address(context_, fake().gids[0].gid.raw, 3);
  EXPECT_EQ(doca_verbs_ah_attr_set_addr_type(address, DOCA_VERBS_ADDR_TYPE_IB_NO_GRH),
            DOCA_SUCCESS);
  EXPECT_EQ(doca_verbs_ah_attr_set_dlid(address, 0x4321), DOCA_SUCCESS);
  QpAttributes attributes;
  attributes.set_peer(77, address);
  EXPECT_EQ(attributes.move(pair, DOCA_VERBS_QP_STATE_INIT,
                            kInitMask & ~DOCA_VERBS_QP_ATTR_ALLOW_REMOTE_WRITE),
            DOCA_SUCCESS);
  EXPECT_EQ(native.attributes.qp_access_flags, unsigned{IBV_ACCESS_REMOTE_READ});
  EXPECT_EQ(attributes.move(pair, DOCA_VERBS_QP_STATE_RTR, kReceiveMask), DOCA_SUCCESS);
  EXPECT_EQ(native.attributes.ah_attr.is_global, 0);
  EXPECT_EQ(native.attributes.ah_attr.dlid, 0x4321);
  EXPECT_EQ(doca_verbs_ah_attr_destroy(address), DOCA_SUCCESS);
  EXPECT_EQ(doca_verbs_qp_destroy(pair), DOCA_SUCCESS);
}

TEST_F(DocaVerbsTest, StatesFollowOneAnother) {
  doca_verbs_qp* const pair = make_qp(context_, pd_, cq_, cq_);
  doca_verbs_ah_attr* const address = make_address(context_, fake().gids[0].gid.raw, 1);
  QpAttributes attributes;
  attributes.set_peer(77, address);
  EXPECT_EQ(attributes.move(pair, DOCA_VERBS_QP_STATE_RTR, kReceiveMask), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(attributes.move(pair, DOCA_VERBS_QP_STATE_RST, DOCA_VERBS_QP_ATTR_NEXT_STATE),
            DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(attributes.move(pair, DOCA_VERBS_QP_STATE_INIT, DOCA_VERBS_QP_ATTR_PORT_NUM), kInvalid);
  for (const auto& [state, mask, from] :
       {std::tuple{DOCA_VERBS_QP_STATE_INIT, kInitMask, DOCA_VERBS_QP_ATTR_PORT_NUM},
        std::tuple{DOCA_VERBS_QP_STATE_RTR, kReceiveMask, DOCA_VERBS_QP_ATTR_AH_ATTR},
        std::tuple{DOCA_VERBS_QP_STATE_RTS, kSendMask, DOCA_VERBS_QP_ATTR_ACK_TIMEOUT}}) {
    EXPECT_EQ(attributes.move(pair, state, mask & ~from), kInvalid) << state;
    EXPECT_EQ(attributes.move(pair, state, mask), DOCA_SUCCESS) << state;
    EXPECT_EQ(attributes.move(pair, state, mask), DOCA_ERROR_BAD_STATE) << state;
  }
  fake().fail_call = "ibv_modify_qp";
  EXPECT_EQ(attributes.move(pair, DOCA_VERBS_QP_STATE_ERR, DOCA_VERBS_QP_ATTR_NEXT_STATE),
            DOCA_ERROR_IO_FAILED);
  fake().fail_call.clear();
  EXPECT_EQ(attributes.move(pair, DOCA_VERBS_QP_STATE_ERR, DOCA_VERBS_QP_ATTR_NEXT_STATE),
            DOCA_SUCCESS);
  EXPECT_EQ(attributes.move(pair, DOCA_VERBS_QP_STATE_RST, DOCA_VERBS_QP_ATTR_NEXT_STATE),
            DOCA_SUCCESS);
  EXPECT_EQ(attributes.move(pair, DOCA_VERBS_QP_STATE_INIT, kInitMask), DOCA_SUCCESS);
  EXPECT_EQ(doca_verbs_ah_attr_destroy(address), DOCA_SUCCESS);
  EXPECT_EQ(doca_verbs_qp_destroy(pair), DOCA_SUCCESS);
}

TEST_F(DocaVerbsTest, RequestsArePostedAndPolled) {
  doca_verbs_qp* const pair = make_qp(context_, pd_, cq_, cq_);
  FakeQueuePair& native = *fake().queue_pairs.at(0);
  ibv_send_wr send{};
  send.wr_id = 5;
  send.opcode = IBV_WR_SEND;
  send.send_flags = IBV_SEND_SIGNALED;
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(doca_verbs_bridge_post_send(pair, &send, &bad), EINVAL);  // in RST
  EXPECT_EQ(bad, &send);
  doca_verbs_ah_attr* const address = make_address(context_, fake().gids[0].gid.raw, 1);
  QpAttributes attributes;
  attributes.set_peer(77, address);
  attributes.connect(pair);
  bad = nullptr;
  EXPECT_EQ(doca_verbs_bridge_post_send(pair, &send, &bad), 0);
  EXPECT_EQ(bad, nullptr);
  ibv_recv_wr receive{};
  receive.wr_id = 6;
  ibv_recv_wr* bad_receive = nullptr;
  EXPECT_EQ(doca_verbs_bridge_post_recv(pair, &receive, &bad_receive), 0);
  EXPECT_EQ(bad_receive, nullptr);
  ibv_wc told[2]{};
  EXPECT_EQ(doca_verbs_bridge_poll_cq(cq_, -1, told), -EINVAL);
  EXPECT_EQ(doca_verbs_bridge_poll_cq(cq_, 2, told), 0);
  fake().finish_send(native);
  EXPECT_EQ(doca_verbs_bridge_poll_cq(cq_, 2, told), 1);
  EXPECT_EQ(told[0].wr_id, 5U);
  EXPECT_EQ(doca_verbs_bridge_get_current_cq_ci(cq_), 1U);
  fake().fail_call = "post_send";
  fake().fail_with = ENOMEM;
  EXPECT_EQ(doca_verbs_bridge_post_send(pair, &send, &bad), ENOMEM);
  EXPECT_EQ(bad, &send);
  fake().fail_call = "post_recv";
  EXPECT_EQ(doca_verbs_bridge_post_recv(pair, &receive, &bad_receive), ENOMEM);
  EXPECT_EQ(bad_receive, &receive);
  // libibverbs does not make queue pairs whose requests may wait.
  EXPECT_EQ(doca_verbs_bridge_set_wait_cq_pi_wr(cq_, 0, &send), DOCA_ERROR_NOT_SUPPORTED);
  fake().fail_call = "poll_cq";
  EXPECT_LT(doca_verbs_bridge_poll_cq(cq_, 2, told), 0);
  EXPECT_EQ(doca_verbs_ah_attr_destroy(address), DOCA_SUCCESS);
  EXPECT_EQ(doca_verbs_qp_destroy(pair), DOCA_SUCCESS);
}

TEST_F(DocaVerbsTest, ObjectsInUseStay) {
  EXPECT_EQ(doca_verbs_bridge_verbs_pd_get_ibv_pd(pd_), native_pd_);
  EXPECT_EQ(doca_verbs_context_destroy(context_), DOCA_ERROR_IN_USE);  // a completion queue
  doca_verbs_qp* const pair = make_qp(context_, pd_, cq_, cq_);
  EXPECT_EQ(doca_verbs_cq_destroy(cq_), DOCA_ERROR_IN_USE);
  EXPECT_EQ(doca_verbs_pd_destroy(pd_), DOCA_ERROR_IN_USE);
  EXPECT_EQ(doca_verbs_qp_destroy(pair), DOCA_SUCCESS);
}

TEST_F(DocaVerbsTest, AProtectionDomainIsADevice) {
  doca_dev* dev = nullptr;
  ASSERT_EQ(doca_verbs_pd_as_doca_dev(pd_, &dev), DOCA_SUCCESS);
  char name[DOCA_DEVINFO_IBDEV_NAME_SIZE] = {};
  EXPECT_EQ(doca_devinfo_get_ibdev_name(doca_dev_as_devinfo(dev), name, sizeof name), DOCA_SUCCESS);
  EXPECT_STREQ(name, "fake0");
  ibv_pd* native = nullptr;
  EXPECT_EQ(doca_rdma_bridge_get_dev_pd(dev, &native), DOCA_SUCCESS);
  EXPECT_EQ(native, native_pd_);
  EXPECT_EQ(doca_verbs_pd_destroy(pd_), DOCA_ERROR_IN_USE);
  doca_uar* uar = nullptr;
  EXPECT_EQ(doca_uar_create(dev, static_cast<doca_uar_allocation_type>(3), &uar), kInvalid);
  EXPECT_EQ(doca_uar_create(dev, DOCA_UAR_ALLOCATION_TYPE_NONCACHE, &uar),
            DOCA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(doca_dev_close(dev), DOCA_SUCCESS);
}

TEST_F(DocaVerbsTest, DevicesOpenOnce) {
  doca_devinfo** list = nullptr;
  std::uint32_t count = 0;
  ASSERT_EQ(doca_devinfo_create_list(&list, &count), DOCA_SUCCESS);
  doca_devinfo* const host = list[0];
  doca_devinfo* const card = list[count - 1];
  doca_verbs_context* context = nullptr;
  EXPECT_EQ(doca_verbs_context_create(host, 0, &context), DOCA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(doca_verbs_context_create(card, 1, &context), kInvalid);
  ASSERT_EQ(doca_verbs_context_create(card, 0, &context), DOCA_SUCCESS);
  EXPECT_EQ(doca_verbs_context_destroy(context), DOCA_SUCCESS);
  doca_dev* dev = nullptr;
  ibv_pd* first = nullptr;
  ibv_pd* second = nullptr;
  ASSERT_EQ(doca_dev_open(host, &dev), DOCA_SUCCESS);
  doca_uar* uar = nullptr;
  EXPECT_EQ(doca_rdma_bridge_get_dev_pd(dev, &first), DOCA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(doca_uar_create(dev, DOCA_UAR_ALLOCATION_TYPE_NONCACHE, &uar),
            DOCA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(doca_dev_close(dev), DOCA_SUCCESS);
  ASSERT_EQ(doca_dev_open(card, &dev), DOCA_SUCCESS);
  EXPECT_EQ(doca_devinfo_destroy_list(list), DOCA_SUCCESS);
  EXPECT_EQ(doca_rdma_bridge_get_dev_pd(dev, &first), DOCA_SUCCESS);
  EXPECT_EQ(doca_rdma_bridge_get_dev_pd(dev, &second), DOCA_SUCCESS);
  EXPECT_NE(first, nullptr);
  EXPECT_EQ(first, second);
  EXPECT_EQ(doca_dev_close(dev), DOCA_SUCCESS);
}

}  // namespace
}  // namespace offload::doca
