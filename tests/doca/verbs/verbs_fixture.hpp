#pragma once

#include <doca_dev.h>
#include <doca_rdma_bridge.h>
#include <doca_uar.h>
#include <doca_verbs.h>
#include <doca_verbs_bridge.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>

namespace offload::doca {

/// The attributes that each step of a queue pair needs.
inline constexpr int kInitMask = DOCA_VERBS_QP_ATTR_NEXT_STATE |
                                 DOCA_VERBS_QP_ATTR_ALLOW_REMOTE_WRITE |
                                 DOCA_VERBS_QP_ATTR_ALLOW_REMOTE_READ |
                                 DOCA_VERBS_QP_ATTR_PKEY_INDEX | DOCA_VERBS_QP_ATTR_PORT_NUM;
inline constexpr int kReceiveMask =
    DOCA_VERBS_QP_ATTR_NEXT_STATE | DOCA_VERBS_QP_ATTR_RQ_PSN | DOCA_VERBS_QP_ATTR_DEST_QP_NUM |
    DOCA_VERBS_QP_ATTR_MIN_RNR_TIMER | DOCA_VERBS_QP_ATTR_PATH_MTU | DOCA_VERBS_QP_ATTR_AH_ATTR;
inline constexpr int kSendMask = DOCA_VERBS_QP_ATTR_NEXT_STATE | DOCA_VERBS_QP_ATTR_SQ_PSN |
                                 DOCA_VERBS_QP_ATTR_ACK_TIMEOUT | DOCA_VERBS_QP_ATTR_RETRY_CNT |
                                 DOCA_VERBS_QP_ATTR_RNR_RETRY;

/// Attributes that take a queue pair to `state`, and are destroyed in the end.
class QpAttributes {
 public:
  QpAttributes() { EXPECT_EQ(doca_verbs_qp_attr_create(&attr_), DOCA_SUCCESS); }
  QpAttributes& operator=(QpAttributes&&) = delete;
  ~QpAttributes() { EXPECT_EQ(doca_verbs_qp_attr_destroy(attr_), DOCA_SUCCESS); }

  void set_peer(std::uint32_t number, doca_verbs_ah_attr* address) {
    EXPECT_EQ(doca_verbs_qp_attr_set_port_num(attr_, 1), DOCA_SUCCESS);
    EXPECT_EQ(doca_verbs_qp_attr_set_allow_remote_write(attr_, 1), DOCA_SUCCESS);
    EXPECT_EQ(doca_verbs_qp_attr_set_allow_remote_read(attr_, 1), DOCA_SUCCESS);
    EXPECT_EQ(doca_verbs_qp_attr_set_dest_qp_num(attr_, number), DOCA_SUCCESS);
    EXPECT_EQ(doca_verbs_qp_attr_set_ah_attr(attr_, address), DOCA_SUCCESS);
    EXPECT_EQ(doca_verbs_qp_attr_set_path_mtu(attr_, DOCA_MTU_SIZE_1K_BYTES), DOCA_SUCCESS);
    EXPECT_EQ(doca_verbs_qp_attr_set_rq_psn(attr_, 0x1234), DOCA_SUCCESS);
    EXPECT_EQ(doca_verbs_qp_attr_set_sq_psn(attr_, 0x1234), DOCA_SUCCESS);
    EXPECT_EQ(doca_verbs_qp_attr_set_min_rnr_timer(attr_, 1), DOCA_SUCCESS);
    EXPECT_EQ(doca_verbs_qp_attr_set_ack_timeout(attr_, 14), DOCA_SUCCESS);
    EXPECT_EQ(doca_verbs_qp_attr_set_retry_cnt(attr_, 5), DOCA_SUCCESS);
    EXPECT_EQ(doca_verbs_qp_attr_set_rnr_retry(attr_, 7), DOCA_SUCCESS);
  }
  doca_error_t move(doca_verbs_qp* pair, doca_verbs_qp_state state, int mask) {
    EXPECT_EQ(doca_verbs_qp_attr_set_next_state(attr_, state), DOCA_SUCCESS);
    return doca_verbs_qp_modify(pair, attr_, mask);
  }
  /// All steps to RTS.
  void connect(doca_verbs_qp* pair) {
    ASSERT_EQ(move(pair, DOCA_VERBS_QP_STATE_INIT, kInitMask), DOCA_SUCCESS);
    ASSERT_EQ(move(pair, DOCA_VERBS_QP_STATE_RTR, kReceiveMask), DOCA_SUCCESS);
    ASSERT_EQ(move(pair, DOCA_VERBS_QP_STATE_RTS, kSendMask), DOCA_SUCCESS);
  }
  [[nodiscard]] doca_verbs_qp_attr* get() const { return attr_; }

 private:
  doca_verbs_qp_attr* attr_ = nullptr;
};

/// A completion queue of 64, with the UAR if there is one.
inline doca_verbs_cq* make_cq(doca_verbs_context* context, doca_uar* uar = nullptr) {
  doca_verbs_cq_attr* attributes = nullptr;
  EXPECT_EQ(doca_verbs_cq_attr_create(&attributes), DOCA_SUCCESS);
  EXPECT_EQ(doca_verbs_cq_attr_set_cq_size(attributes, 64), DOCA_SUCCESS);
  EXPECT_EQ(doca_verbs_cq_attr_set_entry_size(attributes, DOCA_VERBS_CQ_ENTRY_SIZE_64),
            DOCA_SUCCESS);
  EXPECT_EQ(doca_verbs_cq_attr_set_external_datapath_en(attributes, 0), DOCA_SUCCESS);
  if (uar != nullptr) {
    EXPECT_EQ(doca_verbs_cq_attr_set_external_uar(attributes, uar), DOCA_SUCCESS);
  }
  doca_verbs_cq* cq = nullptr;
  EXPECT_EQ(doca_verbs_cq_create(context, attributes, &cq), DOCA_SUCCESS);
  EXPECT_EQ(doca_verbs_cq_attr_destroy(attributes), DOCA_SUCCESS);
  return cq;
}

/// Attributes of a queue pair of 16 requests of each kind. `signal_all`: each send completes.
inline doca_verbs_qp_init_attr* make_qp_attributes(doca_verbs_pd* pd, doca_verbs_cq* sends,
                                                   doca_verbs_cq* receives, doca_uar* uar = nullptr,
                                                   bool signal_all = false) {
  doca_verbs_qp_init_attr* attributes = nullptr;
  EXPECT_EQ(doca_verbs_qp_init_attr_create(&attributes), DOCA_SUCCESS);
  EXPECT_EQ(doca_verbs_qp_init_attr_set_pd(attributes, pd), DOCA_SUCCESS);
  EXPECT_EQ(doca_verbs_qp_init_attr_set_qp_type(attributes, DOCA_VERBS_QP_TYPE_RC), DOCA_SUCCESS);
  EXPECT_EQ(doca_verbs_qp_init_attr_set_external_datapath_en(attributes, 0), DOCA_SUCCESS);
  EXPECT_EQ(doca_verbs_qp_init_attr_set_max_inline_data(attributes, 0), DOCA_SUCCESS);
  EXPECT_EQ(doca_verbs_qp_init_attr_set_sq_sig_all(attributes, signal_all ? 1 : 0), DOCA_SUCCESS);
  if (sends != nullptr) {
    EXPECT_EQ(doca_verbs_qp_init_attr_set_send_cq(attributes, sends), DOCA_SUCCESS);
    EXPECT_EQ(doca_verbs_qp_init_attr_set_sq_wr(attributes, 16), DOCA_SUCCESS);
    EXPECT_EQ(doca_verbs_qp_init_attr_set_send_max_sges(attributes, 6), DOCA_SUCCESS);
  }
  if (receives != nullptr) {
    EXPECT_EQ(doca_verbs_qp_init_attr_set_receive_cq(attributes, receives), DOCA_SUCCESS);
    EXPECT_EQ(doca_verbs_qp_init_attr_set_rq_wr(attributes, 16), DOCA_SUCCESS);
    EXPECT_EQ(doca_verbs_qp_init_attr_set_receive_max_sges(attributes, 1), DOCA_SUCCESS);
  }
  if (uar != nullptr) {
    EXPECT_EQ(doca_verbs_qp_init_attr_set_external_uar(attributes, uar), DOCA_SUCCESS);
  }
  return attributes;
}

/// A queue pair of those attributes.
inline doca_verbs_qp* make_qp(doca_verbs_context* context, doca_verbs_pd* pd, doca_verbs_cq* sends,
                              doca_verbs_cq* receives, doca_uar* uar = nullptr,
                              bool signal_all = false) {
  doca_verbs_qp_init_attr* const attributes =
      make_qp_attributes(pd, sends, receives, uar, signal_all);
  doca_verbs_qp* pair = nullptr;
  EXPECT_EQ(doca_verbs_qp_create(context, attributes, &pair), DOCA_SUCCESS);
  EXPECT_EQ(doca_verbs_qp_init_attr_destroy(attributes), DOCA_SUCCESS);
  return pair;
}

/// A path by a GID of RoCE.
inline doca_verbs_ah_attr* make_address(doca_verbs_context* context, const std::uint8_t* gid,
                                        std::uint8_t index) {
  doca_verbs_ah_attr* address = nullptr;
  doca_verbs_gid raw{};
  std::memcpy(raw.raw, gid, sizeof raw.raw);
  EXPECT_EQ(doca_verbs_ah_attr_create(context, &address), DOCA_SUCCESS);
  EXPECT_EQ(doca_verbs_ah_attr_set_addr_type(address, DOCA_VERBS_ADDR_TYPE_IPv4), DOCA_SUCCESS);
  EXPECT_EQ(doca_verbs_ah_attr_set_gid(address, raw), DOCA_SUCCESS);
  EXPECT_EQ(doca_verbs_ah_attr_set_dlid(address, 0), DOCA_SUCCESS);
  EXPECT_EQ(doca_verbs_ah_attr_set_sgid_index(address, index), DOCA_SUCCESS);
  EXPECT_EQ(doca_verbs_ah_attr_set_hop_limit(address, 255), DOCA_SUCCESS);
  EXPECT_EQ(doca_verbs_ah_attr_set_traffic_class(address, 8), DOCA_SUCCESS);
  return address;
}

}  // namespace offload::doca
