#include "rdma/verbs/queue_pair.hpp"

namespace offload::rdma {

using core::Error;
using core::ErrorCode;
/// 7 retries for ever.
constexpr std::uint8_t kMaxRetries = 6;

static bool has_peer(QpType type) noexcept {
  return type == QpType::rc || type == QpType::uc;
}

std::string_view name_of(ibv_qp_state state) noexcept {
  switch (state) {
    case IBV_QPS_RESET: return "RESET";
    case IBV_QPS_INIT: return "INIT";
    case IBV_QPS_RTR: return "RTR";
    case IBV_QPS_RTS: return "RTS";
    case IBV_QPS_SQD: return "SQD";
    case IBV_QPS_SQE: return "SQE";
    default: return "ERR";
  }
}

AddressHandle::AddressHandle(const ProtectionDomain& domain, ibv_ah_attr path)
    : native_(check_pointer(ibv_create_ah(domain.get(), &path),
                            "make a path to " + to_string(path.grh.dgid)),
              "a path") {}

QueuePair::QueuePair(const ProtectionDomain& domain, const CompletionQueue& sends,
                     const CompletionQueue& receives, const QueuePairOptions& options)
    : type_(options.qp_type) {
  ibv_qp_init_attr attributes{};
  attributes.send_cq = sends.get();
  attributes.recv_cq = receives.get();
  attributes.srq = options.srq == nullptr ? nullptr : options.srq->get();
  attributes.qp_type = to_native(options.qp_type);
  attributes.sq_sig_all = options.sq_sig_all ? 1 : 0;
  attributes.cap = {options.max_send_wr, options.max_recv_wr, options.max_sge, options.max_sge,
                    options.max_inline_data};
  native_ = {check_pointer(ibv_create_qp(domain.get(), &attributes),
                           "make an " + std::string(name_of(type_)) + " queue pair on " +
                               domain.device_name()),
             "a queue pair"};
  capacity_ = attributes.cap;
}

QueuePair QueuePair::adopt(ibv_qp* native, QpType type, const ibv_qp_cap& capacity) {
  return {native, type, capacity};
}

std::string QueuePair::described() const {
  return "queue pair " + std::to_string(qp_num()) + " (" + std::string(name_of(type_)) + ") on " +
         native_->context->device->name;
}

ibv_qp_attr QueuePair::query() const {
  return query(IBV_QP_STATE | IBV_QP_CAP | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_TIMEOUT |
               IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_DEST_QPN)
      .attributes;
}

QueuePairQuery QueuePair::query(int mask) const {
  QueuePairQuery result;
  check(ibv_query_qp(get(), &result.attributes, mask, &result.initial), "query " + described());
  return result;
}

void QueuePair::expect(ibv_qp_state state, std::string_view action) const {
  if (state_ != state) core::throw_bad_state(described(), name_of(state_), action);
}

void QueuePair::move_to(ibv_qp_state to, ibv_qp_attr& attributes, int mask) {
  attributes.qp_state = to;
  modify(attributes, mask | IBV_QP_STATE);
}

void QueuePair::modify(const ibv_qp_attr& attributes, int mask) {
  const bool moves = (mask & IBV_QP_STATE) != 0;
  ibv_qp_attr copy = attributes;
  const int errnum = errno_of(ibv_modify_qp(get(), &copy, mask));
  if (errnum != 0) {
    const std::string from(name_of(state_));
    core::throw_errno(described() + (moves ? " cannot change from " + from + " to " +
                                                 std::string(name_of(attributes.qp_state))
                                           : " does not accept that change in " + from),
                      errnum);
  }
  if (moves) state_ = attributes.qp_state;
}

void QueuePair::initialize(std::uint8_t port_num, memory::Access access, std::uint32_t qkey,
                           std::uint16_t pkey_index) {
  expect(IBV_QPS_RESET, "be initialised");
  ibv_qp_attr attributes{};
  attributes.port_num = port_num;
  attributes.pkey_index = pkey_index;
  attributes.qp_access_flags = access_flags(access & memory::kRemoteAccess);
  attributes.qkey = qkey;
  int others = IBV_QP_PKEY_INDEX | (has_peer(type_) ? IBV_QP_ACCESS_FLAGS : IBV_QP_QKEY);
  if (type_ == QpType::raw_packet) others = 0;
  move_to(IBV_QPS_INIT, attributes, IBV_QP_PORT | others);
}

void QueuePair::ready_to_receive(const RtrAttributes& rtr) {
  expect(IBV_QPS_INIT, "become ready to receive");
  if (!has_peer(type_)) {
    throw Error(ErrorCode::invalid_value, described() + " has no peer");
  }
  ibv_qp_attr attributes{};
  attributes.ah_attr = rtr.ah_attr;
  attributes.path_mtu = rtr.path_mtu;
  attributes.dest_qp_num = rtr.dest_qp_num;
  attributes.rq_psn = rtr.rq_psn;
  attributes.max_dest_rd_atomic = rtr.max_dest_rd_atomic;
  attributes.min_rnr_timer = rtr.min_rnr_timer;
  int mask = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  if (type_ == QpType::rc) mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  move_to(IBV_QPS_RTR, attributes, mask);
}

void QueuePair::ready_to_receive() {
  expect(IBV_QPS_INIT, "become ready to receive");
  if (has_peer(type_)) {
    throw Error(ErrorCode::invalid_value, described() + " needs a peer");
  }
  ibv_qp_attr attributes{};
  move_to(IBV_QPS_RTR, attributes, 0);
}

void QueuePair::ready_to_send(const RtsAttributes& rts) {
  expect(IBV_QPS_RTR, "become ready to send");
  if (rts.retry_cnt > kMaxRetries || rts.rnr_retry > kMaxRetries) {
    throw Error(ErrorCode::invalid_value,
                described() + ": at most 6 retries are allowed, as 7 has no end");
  }
  ibv_qp_attr attributes{};
  attributes.sq_psn = rts.sq_psn;
  attributes.timeout = rts.timeout;
  attributes.retry_cnt = rts.retry_cnt;
  attributes.rnr_retry = rts.rnr_retry;
  attributes.max_rd_atomic = rts.max_rd_atomic;
  int mask = type_ == QpType::raw_packet ? 0 : IBV_QP_SQ_PSN;
  if (type_ == QpType::rc) {
    mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  }
  move_to(IBV_QPS_RTS, attributes, mask);
}

void QueuePair::fail() {
  if (state_ == IBV_QPS_RESET) core::throw_bad_state(described(), name_of(state_), "fail");
  ibv_qp_attr attributes{};
  move_to(IBV_QPS_ERR, attributes, 0);
}

void QueuePair::reset() {
  ibv_qp_attr attributes{};
  move_to(IBV_QPS_RESET, attributes, 0);
}

core::Status QueuePair::post_receive(ibv_recv_wr& first, ibv_recv_wr*& bad) noexcept {
  bad = &first;
  if (state_ == IBV_QPS_RESET) return ErrorCode::bad_state;
  return post_status(ibv_post_recv(get(), &first, &bad));
}

}  // namespace offload::rdma
