#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "core/status.hpp"
#include "rdma/verbs/handle.hpp"
#include "rdma/verbs/protection_domain.hpp"

namespace offload::rdma {

/// Receives for many queue pairs: whichever has a message takes the next. Move-only; the domain
/// outlives it, and it the queue pairs. Any thread may post.
class SharedReceiveQueue {
 public:
  /// For `depth` receives of `scatter` pieces each. Throws Error.
  SharedReceiveQueue(const ProtectionDomain& domain, std::uint32_t depth,
                     std::uint32_t scatter = 1);

  [[nodiscard]] ibv_srq* get() const noexcept { return native_.get(); }

  /// Posts the list that `first` heads, with one doorbell. On an error those before `bad` are
  /// posted: full, invalid_value, driver.
  core::Status post(ibv_recv_wr& first, ibv_recv_wr*& bad) noexcept {
    return post_status(ibv_post_srq_recv(get(), &first, &bad));
  }

  /// One asynchronous event (IBV_EVENT_SRQ_LIMIT_REACHED) when fewer than `limit` receives are
  /// left; once. Throws Error.
  void notify_below(std::uint32_t limit);

 private:
  Handle<ibv_srq, ibv_destroy_srq> native_;
};

}  // namespace offload::rdma
