#include "rdma/verbs/shared_receive_queue.hpp"

namespace offload::rdma {

SharedReceiveQueue::SharedReceiveQueue(const ProtectionDomain& domain, std::uint32_t depth,
                                       std::uint32_t scatter) {
  ibv_srq_init_attr attributes{};
  attributes.attr = {depth, scatter, 0};
  native_ = {check_pointer(ibv_create_srq(domain.get(), &attributes),
                           "make a shared receive queue on " + domain.device_name()),
             "a shared receive queue"};
}

void SharedReceiveQueue::notify_below(std::uint32_t limit) {
  ibv_srq_attr attributes{};
  attributes.srq_limit = limit;
  check(ibv_modify_srq(get(), &attributes, IBV_SRQ_LIMIT), "set a shared receive queue's limit");
}

}  // namespace offload::rdma
