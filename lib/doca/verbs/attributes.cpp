#include <cstring>
#include <limits>

#include "doca/guard.hpp"
#include "doca/verbs/verbs.hpp"

/// The attribute objects of doca_verbs.h.
namespace offload::doca {
namespace {

constexpr std::uint32_t k24Bits = 0xff'ffffU;
constexpr std::uint16_t kMostCode = 31;
constexpr std::uint16_t kMostRetries = 7;

template <class Attributes>
doca_error_t create(const char* call, Attributes** attributes) {
  if (attributes == nullptr) return DOCA_ERROR_INVALID_VALUE;
  return guarded(call, [&] { *attributes = new Attributes(); });
}

template <class Attributes>
doca_error_t destroy(Attributes* attributes) noexcept {
  if (attributes == nullptr) return DOCA_ERROR_INVALID_VALUE;
  delete attributes;
  return DOCA_SUCCESS;
}

/// Sets a member, of Attributes or of its base, to a number from `least` to `most`.
template <class Attributes, class Of, class Member, class Value>
doca_error_t set(Attributes* attributes, Member Of::*member, Value value,
                 Value most = std::numeric_limits<Value>::max(), Value least = 0) noexcept {
  if (attributes == nullptr || value > most || value < least) return DOCA_ERROR_INVALID_VALUE;
  attributes->*member = static_cast<Member>(value);
  return DOCA_SUCCESS;
}

/// Sets a member to an object that the attributes refer to.
template <class Attributes, class Object>
doca_error_t refer(Attributes* attributes, Object* Attributes::*member, Object* object) noexcept {
  if (any_null(attributes, object)) return DOCA_ERROR_INVALID_VALUE;
  attributes->*member = object;
  return DOCA_SUCCESS;
}

}  // namespace
}  // namespace offload::doca

using namespace offload::doca;  // NOLINT(google-build-using-namespace): the calls have no namespace

doca_error_t doca_verbs_cq_attr_create(doca_verbs_cq_attr** cq_attr) {
  return create(__func__, cq_attr);
}
doca_error_t doca_verbs_cq_attr_destroy(doca_verbs_cq_attr* cq_attr) {
  return destroy(cq_attr);
}
doca_error_t doca_verbs_cq_attr_set_cq_size(doca_verbs_cq_attr* cq_attr, uint32_t cq_size) {
  return set(cq_attr, &doca_verbs_cq_attr::size, cq_size, UINT32_MAX, 1U);
}
doca_error_t doca_verbs_cq_attr_set_entry_size(doca_verbs_cq_attr* cq_attr,
                                               doca_verbs_cq_entry_size entry_size) {
  constexpr std::uint32_t kOnly = DOCA_VERBS_CQ_ENTRY_SIZE_64;
  return set(cq_attr, &doca_verbs_cq_attr::entry_size, std::uint32_t{entry_size}, kOnly, kOnly);
}
doca_error_t doca_verbs_cq_attr_set_external_datapath_en(doca_verbs_cq_attr* cq_attr,
                                                         uint8_t external_datapath_en) {
  return set(cq_attr, &doca_verbs_cq_attr::external_datapath, external_datapath_en);
}
doca_error_t doca_verbs_cq_attr_set_external_uar(doca_verbs_cq_attr* cq_attr,
                                                 doca_uar* external_uar) {
  return refer(cq_attr, &doca_verbs_cq_attr::uar, external_uar);
}

doca_error_t doca_verbs_cq_attr_set_external_umem(doca_verbs_cq_attr* cq_attr,
                                                  doca_umem* external_umem,
                                                  uint64_t external_umem_offset) {
  const doca_error_t result = refer(cq_attr, &doca_verbs_cq_attr::umem, external_umem);
  if (result == DOCA_SUCCESS) cq_attr->umem_offset = external_umem_offset;
  return result;
}
doca_error_t doca_verbs_cq_attr_set_cq_overrun(doca_verbs_cq_attr* cq_attr, uint8_t overrun) {
  return set(cq_attr, &doca_verbs_cq_attr::overrun, overrun);
}

doca_error_t doca_verbs_device_attr_free(doca_verbs_device_attr* verbs_device_attr) {
  return destroy(verbs_device_attr);
}
uint32_t doca_verbs_device_attr_get_max_qp_rd_atom(
    const doca_verbs_device_attr* verbs_device_attr) {
  return verbs_device_attr != nullptr ? verbs_device_attr->max_qp_rd_atom : 0;
}
uint32_t doca_verbs_device_attr_get_max_qp_init_rd_atom(
    const doca_verbs_device_attr* verbs_device_attr) {
  return verbs_device_attr != nullptr ? verbs_device_attr->max_qp_init_rd_atom : 0;
}
doca_error_t doca_verbs_device_attr_get_is_cqe_inline_supported(
    const doca_verbs_device_attr* verbs_device_attr) {
  return verbs_device_attr == nullptr ? DOCA_ERROR_INVALID_VALUE : DOCA_ERROR_NOT_SUPPORTED;
}
doca_error_t doca_verbs_device_attr_get_is_send_dbr_mode_supported(
    const doca_verbs_device_attr* verbs_device_attr, doca_verbs_qp_send_dbr_mode send_dbr_mode) {
  if (verbs_device_attr == nullptr || send_dbr_mode > DOCA_VERBS_QP_SEND_DBR_MODE_NO_DBR_EXT) {
    return DOCA_ERROR_INVALID_VALUE;
  }
  const bool supported = send_dbr_mode == DOCA_VERBS_QP_SEND_DBR_MODE_DBR_VALID ||
                         verbs_device_attr->rings_without_record;
  return supported ? DOCA_SUCCESS : DOCA_ERROR_NOT_SUPPORTED;
}

doca_error_t doca_verbs_ah_attr_create(doca_verbs_context* verbs_context,
                                       doca_verbs_ah_attr** ah_attr) {
  return verbs_context == nullptr ? DOCA_ERROR_INVALID_VALUE : create(__func__, ah_attr);
}
doca_error_t doca_verbs_ah_attr_destroy(doca_verbs_ah_attr* ah_attr) {
  return destroy(ah_attr);
}
doca_error_t doca_verbs_ah_attr_set_addr_type(doca_verbs_ah_attr* ah_attr,
                                              doca_verbs_addr_type addr_type) {
  constexpr std::uint32_t kLast = DOCA_VERBS_ADDR_TYPE_IB_NO_GRH;
  return set(ah_attr, &doca_verbs_ah_attr::type, std::uint32_t{addr_type}, kLast);
}
doca_error_t doca_verbs_ah_attr_set_gid(doca_verbs_ah_attr* ah_attr, doca_verbs_gid gid) {
  if (ah_attr == nullptr) return DOCA_ERROR_INVALID_VALUE;
  std::memcpy(ah_attr->route.dgid.raw, gid.raw, sizeof gid.raw);
  return DOCA_SUCCESS;
}
doca_error_t doca_verbs_ah_attr_set_dlid(doca_verbs_ah_attr* ah_attr, uint32_t dlid) {
  return set(ah_attr, &doca_verbs_ah_attr::dlid, dlid, std::uint32_t{UINT16_MAX});
}
doca_error_t doca_verbs_ah_attr_set_sgid_index(doca_verbs_ah_attr* ah_attr, uint8_t sgid_index) {
  return set(ah_attr == nullptr ? nullptr : &ah_attr->route, &ibv_global_route::sgid_index,
             sgid_index);
}
doca_error_t doca_verbs_ah_attr_set_hop_limit(doca_verbs_ah_attr* ah_attr, uint8_t hop_limit) {
  return set(ah_attr == nullptr ? nullptr : &ah_attr->route, &ibv_global_route::hop_limit,
             hop_limit);
}
doca_error_t doca_verbs_ah_attr_set_traffic_class(doca_verbs_ah_attr* ah_attr,
                                                  uint8_t traffic_class) {
  return set(ah_attr == nullptr ? nullptr : &ah_attr->route, &ibv_global_route::traffic_class,
             traffic_class);
}

doca_error_t doca_verbs_qp_init_attr_create(doca_verbs_qp_init_attr** qp_init_attr) {
  return create(__func__, qp_init_attr);
}
doca_error_t doca_verbs_qp_init_attr_destroy(doca_verbs_qp_init_attr* qp_init_attr) {
  return destroy(qp_init_attr);
}
doca_error_t doca_verbs_qp_init_attr_set_pd(doca_verbs_qp_init_attr* qp_init_attr,
                                            doca_verbs_pd* pd) {
  return refer(qp_init_attr, &doca_verbs_qp_init_attr::pd, pd);
}
doca_error_t doca_verbs_qp_init_attr_set_send_cq(doca_verbs_qp_init_attr* qp_init_attr,
                                                 doca_verbs_cq* send_cq) {
  return refer(qp_init_attr, &doca_verbs_qp_init_attr::send_cq, send_cq);
}
doca_error_t doca_verbs_qp_init_attr_set_receive_cq(doca_verbs_qp_init_attr* qp_init_attr,
                                                    doca_verbs_cq* receive_cq) {
  return refer(qp_init_attr, &doca_verbs_qp_init_attr::receive_cq, receive_cq);
}
doca_error_t doca_verbs_qp_init_attr_set_sq_wr(doca_verbs_qp_init_attr* qp_init_attr,
                                               uint32_t sq_wr) {
  return set(qp_init_attr, &ibv_qp_cap::max_send_wr, sq_wr);
}
doca_error_t doca_verbs_qp_init_attr_set_rq_wr(doca_verbs_qp_init_attr* qp_init_attr,
                                               uint32_t rq_wr) {
  return set(qp_init_attr, &ibv_qp_cap::max_recv_wr, rq_wr);
}
doca_error_t doca_verbs_qp_init_attr_set_send_max_sges(doca_verbs_qp_init_attr* qp_init_attr,
                                                       uint32_t send_max_sges) {
  return set(qp_init_attr, &ibv_qp_cap::max_send_sge, send_max_sges);
}
doca_error_t doca_verbs_qp_init_attr_set_receive_max_sges(doca_verbs_qp_init_attr* qp_init_attr,
                                                          uint32_t receive_max_sges) {
  return set(qp_init_attr, &ibv_qp_cap::max_recv_sge, receive_max_sges);
}
doca_error_t doca_verbs_qp_init_attr_set_max_inline_data(doca_verbs_qp_init_attr* qp_init_attr,
                                                         uint32_t max_inline_data) {
  return set(qp_init_attr, &ibv_qp_cap::max_inline_data, max_inline_data);
}
doca_error_t doca_verbs_qp_init_attr_set_qp_type(doca_verbs_qp_init_attr* qp_init_attr,
                                                 uint32_t qp_type) {
  constexpr std::uint32_t kOnly = DOCA_VERBS_QP_TYPE_RC;
  return set(qp_init_attr, &doca_verbs_qp_init_attr::type, qp_type, kOnly);
}
doca_error_t doca_verbs_qp_init_attr_set_sq_sig_all(doca_verbs_qp_init_attr* qp_init_attr,
                                                    uint8_t sq_sig_all) {
  return set(qp_init_attr, &doca_verbs_qp_init_attr::sq_sig_all, sq_sig_all);
}
doca_error_t doca_verbs_qp_init_attr_set_external_datapath_en(doca_verbs_qp_init_attr* qp_init_attr,
                                                              uint8_t external_datapath_en) {
  return set(qp_init_attr, &doca_verbs_qp_init_attr::external_datapath, external_datapath_en);
}
doca_error_t doca_verbs_qp_init_attr_set_external_uar(doca_verbs_qp_init_attr* qp_init_attr,
                                                      doca_uar* external_uar) {
  return refer(qp_init_attr, &doca_verbs_qp_init_attr::uar, external_uar);
}

doca_error_t doca_verbs_qp_init_attr_set_external_umem(doca_verbs_qp_init_attr* qp_init_attr,
                                                       doca_umem* external_umem,
                                                       uint64_t external_umem_offset) {
  const doca_error_t result = refer(qp_init_attr, &doca_verbs_qp_init_attr::umem, external_umem);
  if (result == DOCA_SUCCESS) qp_init_attr->umem_offset = external_umem_offset;
  return result;
}
doca_error_t doca_verbs_qp_init_attr_set_external_dbr_umem(doca_verbs_qp_init_attr* qp_init_attr,
                                                           doca_umem* external_umem,
                                                           uint64_t external_umem_offset) {
  const doca_error_t result =
      refer(qp_init_attr, &doca_verbs_qp_init_attr::dbr_umem, external_umem);
  if (result == DOCA_SUCCESS) qp_init_attr->dbr_umem_offset = external_umem_offset;
  return result;
}
doca_error_t doca_verbs_qp_init_attr_set_cqe_inline(doca_verbs_qp_init_attr* qp_init_attr,
                                                    uint8_t cqe_inline) {
  return set(qp_init_attr, &doca_verbs_qp_init_attr::cqe_inline, cqe_inline);
}
doca_error_t doca_verbs_qp_init_attr_set_core_direct_master(doca_verbs_qp_init_attr* qp_init_attr,
                                                            uint8_t core_direct_master) {
  return set(qp_init_attr, &doca_verbs_qp_init_attr::is_master, core_direct_master);
}
doca_error_t doca_verbs_qp_init_attr_set_send_dbr_mode(doca_verbs_qp_init_attr* qp_init_attr,
                                                       doca_verbs_qp_send_dbr_mode send_dbr_mode) {
  constexpr std::uint32_t kLast = DOCA_VERBS_QP_SEND_DBR_MODE_NO_DBR_EXT;
  return set(qp_init_attr, &doca_verbs_qp_init_attr::send_dbr_mode, std::uint32_t{send_dbr_mode},
             kLast);
}

doca_error_t doca_verbs_qp_attr_create(doca_verbs_qp_attr** qp_attr) {
  return create(__func__, qp_attr);
}
doca_error_t doca_verbs_qp_attr_destroy(doca_verbs_qp_attr* qp_attr) {
  return destroy(qp_attr);
}
doca_error_t doca_verbs_qp_attr_set_next_state(doca_verbs_qp_attr* qp_attr,
                                               doca_verbs_qp_state next_state) {
  constexpr std::uint32_t kLast = DOCA_VERBS_QP_STATE_ERR;
  return set(qp_attr, &doca_verbs_qp_attr::next_state, std::uint32_t{next_state}, kLast);
}
doca_error_t doca_verbs_qp_attr_set_path_mtu(doca_verbs_qp_attr* qp_attr, doca_mtu_size path_mtu) {
  constexpr std::uint32_t kLast = DOCA_MTU_SIZE_4K_BYTES;
  return set(qp_attr, &doca_verbs_qp_attr::mtu, std::uint32_t{path_mtu}, kLast);
}
doca_error_t doca_verbs_qp_attr_set_rq_psn(doca_verbs_qp_attr* qp_attr, uint32_t rq_psn) {
  return set(qp_attr, &ibv_qp_attr::rq_psn, rq_psn, k24Bits);
}
doca_error_t doca_verbs_qp_attr_set_sq_psn(doca_verbs_qp_attr* qp_attr, uint32_t sq_psn) {
  return set(qp_attr, &ibv_qp_attr::sq_psn, sq_psn, k24Bits);
}
doca_error_t doca_verbs_qp_attr_set_dest_qp_num(doca_verbs_qp_attr* qp_attr, uint32_t dest_qp_num) {
  return set(qp_attr, &ibv_qp_attr::dest_qp_num, dest_qp_num, k24Bits);
}
doca_error_t doca_verbs_qp_attr_set_allow_remote_write(doca_verbs_qp_attr* qp_attr,
                                                       uint8_t allow_remote_write) {
  return set(qp_attr, &doca_verbs_qp_attr::allow_remote_write, allow_remote_write);
}
doca_error_t doca_verbs_qp_attr_set_allow_remote_read(doca_verbs_qp_attr* qp_attr,
                                                      uint8_t allow_remote_read) {
  return set(qp_attr, &doca_verbs_qp_attr::allow_remote_read, allow_remote_read);
}
doca_error_t doca_verbs_qp_attr_set_port_num(doca_verbs_qp_attr* qp_attr, uint16_t port_num) {
  return set(qp_attr, &doca_verbs_qp_attr::port, port_num, std::uint16_t{UINT8_MAX},
             std::uint16_t{1});
}
doca_error_t doca_verbs_qp_attr_set_ack_timeout(doca_verbs_qp_attr* qp_attr, uint16_t ack_timeout) {
  return set(qp_attr, &ibv_qp_attr::timeout, ack_timeout, kMostCode);
}
doca_error_t doca_verbs_qp_attr_set_min_rnr_timer(doca_verbs_qp_attr* qp_attr,
                                                  uint16_t min_rnr_timer) {
  return set(qp_attr, &ibv_qp_attr::min_rnr_timer, min_rnr_timer, kMostCode);
}
doca_error_t doca_verbs_qp_attr_set_retry_cnt(doca_verbs_qp_attr* qp_attr, uint16_t retry_cnt) {
  return set(qp_attr, &ibv_qp_attr::retry_cnt, retry_cnt, kMostRetries);
}
doca_error_t doca_verbs_qp_attr_set_rnr_retry(doca_verbs_qp_attr* qp_attr, uint16_t rnr_retry) {
  return set(qp_attr, &ibv_qp_attr::rnr_retry, rnr_retry, kMostRetries);
}
doca_error_t doca_verbs_qp_attr_set_atomic_mode(doca_verbs_qp_attr* qp_attr,
                                                doca_verbs_qp_atomic_mode atomic_mode) {
  constexpr std::uint32_t kLast = DOCA_VERBS_QP_ATOMIC_MODE_IB_SPEC;
  return set(qp_attr, &doca_verbs_qp_attr::atomic_mode, std::uint32_t{atomic_mode}, kLast);
}
doca_error_t doca_verbs_qp_attr_set_max_rd_atomic(doca_verbs_qp_attr* qp_attr,
                                                  uint8_t max_rd_atomic) {
  return set(qp_attr, &ibv_qp_attr::max_rd_atomic, max_rd_atomic);
}
doca_error_t doca_verbs_qp_attr_set_max_dest_rd_atomic(doca_verbs_qp_attr* qp_attr,
                                                       uint8_t max_dest_rd_atomic) {
  return set(qp_attr, &ibv_qp_attr::max_dest_rd_atomic, max_dest_rd_atomic);
}
doca_error_t doca_verbs_qp_attr_set_ah_attr(doca_verbs_qp_attr* qp_attr,
                                            doca_verbs_ah_attr* ah_attr) {
  if (any_null(qp_attr, ah_attr)) return DOCA_ERROR_INVALID_VALUE;
  qp_attr->peer = *ah_attr;
  return DOCA_SUCCESS;
}
