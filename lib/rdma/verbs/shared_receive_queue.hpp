#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "core/status.hpp"
#include "rdma/verbs/protection_domain.hpp"

namespace offload::rdma {

/// A shared receive queue (ibv_srq): receives for many queue pairs, each message taking the oldest.
/// Move-only; the domain outlives it, and it outlives the queue pairs. Any thread may post.
class SharedReceiveQueue {
 public:
  /// For `max_wr` receives of at most `max_sge` elements each. Throws Error.
  SharedReceiveQueue(const ProtectionDomain& domain, std::uint32_t max_wr,
                     std::uint32_t max_sge = 1) {
    ibv_srq_init_attr attributes{};
    attributes.attr = {max_wr, max_sge, 0};
    native_ = {check_pointer(ibv_create_srq(domain.get(), &attributes),
                             "make a shared receive queue on " + domain.device_name()),
               "a shared receive queue"};
  }

  [[nodiscard]] ibv_srq* get() const noexcept { return native_.get(); }

  /// Posts the list from `first` on, with one doorbell. After an error (full, invalid_value,
  /// driver) those before `bad` are posted.
  core::Status post(ibv_recv_wr& first, ibv_recv_wr*& bad) noexcept {
    return post_status(ibv_post_srq_recv(get(), &first, &bad));
  }

  /// Requests one IBV_EVENT_SRQ_LIMIT_REACHED for when fewer than `limit` receives are left
  /// (srq_limit, ibv_modify_srq(3)). Throws Error.
  void notify_below(std::uint32_t limit) {
    ibv_srq_attr attributes{};
    attributes.srq_limit = limit;
    check(ibv_modify_srq(get(), &attributes, IBV_SRQ_LIMIT), "set a shared receive queue's limit");
  }

  /// Its size, and the limit that is set: 0 once the event has come (ibv_query_srq(3)). Throws
  /// Error.
  [[nodiscard]] ibv_srq_attr query() const {
    ibv_srq_attr attributes{};
    check(ibv_query_srq(get(), &attributes), "query a shared receive queue");
    return attributes;
  }

 private:
  Handle<ibv_srq, ibv_destroy_srq> native_;
};

}  // namespace offload::rdma
