#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/rdma/queue_pair.hpp"

namespace offload::rdma {

/// Writes the completions of a queue, for an emulation of a card. A queue has a place for each
/// entry that can be in flight, so an owner that waits for room never overruns it; one that does
/// not loses its own completions. One thread.
class CompletionWriter {
 public:
  explicit CompletionWriter(const kernels::rdma::CompletionQueue& queue) : queue_(queue) {}

  /// Writes the next. The owner's word comes last, with release: what the operation wrote, and the
  /// rest of the entry, is there before. Pairs with load_owner().
  void write(const kernels::rdma::Completion& completion) noexcept {
    const kernels::rdma::Cqe cqe = kernels::rdma::make_cqe(completion, written_, queue_.log2);
    auto& place = queue_.entries[written_++ & ((std::uint64_t{1} << queue_.log2) - 1)];
    std::copy_n(cqe.words, kernels::rdma::kCqeOwner, place.words);
    __atomic_store_n(&place.words[kernels::rdma::kCqeOwner], cqe.words[kernels::rdma::kCqeOwner],
                     __ATOMIC_RELEASE);
  }

  [[nodiscard]] std::uint64_t written() const noexcept { return written_; }

 private:
  kernels::rdma::CompletionQueue queue_;
  std::uint64_t written_ = 0;
};

}  // namespace offload::rdma
