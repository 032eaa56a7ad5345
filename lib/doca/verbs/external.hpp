#pragma once

#include <optional>

#include "doca/gpu/gpu.hpp"
#include "doca/verbs/card.hpp"

/// A rdma::mlx5::CardSpace.
struct doca_umem {
  /// Throws Error.
  doca_umem(doca_dev& of, doca_gpu* owner, void* first, std::size_t bytes);

  offload::doca::Share<doca_dev> device;
  std::optional<offload::doca::Share<doca_gpu>> gpu;  ///< none: memory of the host
  ibv_context* native;                                ///< that of the device
  std::byte* address;                                 ///< as kernels see it, or the processor
  std::size_t size;
  offload::rdma::mlx5::CardSpace space;
  std::atomic<std::size_t> users{0};
};

namespace offload::doca {

/// A completion queue in a UMEM, which the program or its kernels poll.
class ExternalCq final : public doca_verbs_cq {
 public:
  /// Throws Error.
  ExternalCq(doca_verbs_context& of, const doca_verbs_cq_attr& attributes);

  [[nodiscard]] Maker maker() const noexcept override { return Maker::external; }
  [[nodiscard]] std::uint32_t number() const noexcept override { return native_.number(); }
  int poll(int, ibv_wc*) noexcept override { return -EINVAL; }
  /// Returns the handle for those who poll.
  [[nodiscard]] kernels::rdma::CompletionQueue queue() const noexcept;

 private:
  Use<doca_umem> umem_;
  rdma::mlx5::RingPlace place_;
  std::uint32_t log2_;
  std::optional<Use<doca_uar>> uar_;
  std::optional<rdma::mlx5::CardRegisters> own_registers_;  ///< without a UAR
  rdma::mlx5::CardObject native_;
};

/// A queue pair in UMEMs, to which the program or its kernels post.
class ExternalQp final : public doca_verbs_qp {
 public:
  /// Throws Error.
  ExternalQp(doca_verbs_context& of, const doca_verbs_qp_init_attr& from);

  [[nodiscard]] std::uint32_t number() const noexcept override { return pair_->number(); }
  void modify(const ibv_qp_attr& attributes, int) override { doca::modify(*pair_, attributes); }
  int post_send(ibv_send_wr& first, ibv_send_wr*& bad) noexcept override {
    bad = &first;
    return EINVAL;
  }
  int post_receive(ibv_recv_wr& first, ibv_recv_wr*& bad) noexcept override {
    bad = &first;
    return EINVAL;
  }

  [[nodiscard]] ExternalCq& sends_queue() const noexcept {
    return static_cast<ExternalCq&>(sends());
  }
  [[nodiscard]] ExternalCq& receives_queue() const noexcept {
    return static_cast<ExternalCq&>(receives());
  }
  /// Returns the handles for those who see the memory of the rings at `rings`. The doorbell is the
  /// card's register, as the processor sees it.
  [[nodiscard]] rdma::QueuePairMemory queues(void* rings) const noexcept;
  /// Returns whether the records are in memory of the host.
  [[nodiscard]] bool has_host_records() const noexcept { return !records_->gpu; }

 private:
  Use<doca_uar> uar_;
  Use<doca_umem> rings_;
  Use<doca_umem> records_;
  rdma::QueueSizes sizes_;
  std::uint64_t rings_offset_;
  std::uint64_t records_offset_;
  bool has_record_;
  std::optional<rdma::mlx5::DevxQueuePair> pair_;
};

}  // namespace offload::doca
