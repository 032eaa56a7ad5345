#pragma once

#include <infiniband/verbs.h>

namespace offload::rdma::test {

/// Returns the attributes that `mask` names, as a device takes only those; the others are 0.
inline ibv_qp_attr masked(const ibv_qp_attr& from, int mask) {
  ibv_qp_attr to{};
  const auto take = [&](auto ibv_qp_attr::*field, int bit) {
    if ((mask & bit) != 0) to.*field = from.*field;
  };
  take(&ibv_qp_attr::qp_state, IBV_QP_STATE);
  take(&ibv_qp_attr::qp_access_flags, IBV_QP_ACCESS_FLAGS);
  take(&ibv_qp_attr::pkey_index, IBV_QP_PKEY_INDEX);
  take(&ibv_qp_attr::port_num, IBV_QP_PORT);
  take(&ibv_qp_attr::qkey, IBV_QP_QKEY);
  take(&ibv_qp_attr::ah_attr, IBV_QP_AV);
  take(&ibv_qp_attr::path_mtu, IBV_QP_PATH_MTU);
  take(&ibv_qp_attr::dest_qp_num, IBV_QP_DEST_QPN);
  take(&ibv_qp_attr::rq_psn, IBV_QP_RQ_PSN);
  take(&ibv_qp_attr::max_dest_rd_atomic, IBV_QP_MAX_DEST_RD_ATOMIC);
  take(&ibv_qp_attr::min_rnr_timer, IBV_QP_MIN_RNR_TIMER);
  take(&ibv_qp_attr::sq_psn, IBV_QP_SQ_PSN);
  take(&ibv_qp_attr::timeout, IBV_QP_TIMEOUT);
  take(&ibv_qp_attr::retry_cnt, IBV_QP_RETRY_CNT);
  take(&ibv_qp_attr::rnr_retry, IBV_QP_RNR_RETRY);
  take(&ibv_qp_attr::max_rd_atomic, IBV_QP_MAX_QP_RD_ATOMIC);
  return to;
}

}  // namespace offload::rdma::test
