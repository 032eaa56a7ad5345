#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "doca/device.hpp"
#include "doca/verbs/verbs.hpp"
#include "memory/range.hpp"
#include "rdma/mlx5/devx_queue_pair.hpp"
#include "rdma/mlx5/doorbell.hpp"

/// A rdma::mlx5::CardRegisters.
struct doca_uar {
  doca_uar(doca_dev& of, offload::rdma::mlx5::RegisterKind kind);

  offload::doca::Share<doca_dev> device;
  ibv_context* native;  ///< that of the device
  offload::rdma::mlx5::CardRegisters registers;
  std::atomic<std::size_t> users{0};
};

namespace offload::doca {

class CardQp;

/// Returns the UAR if it is one of the context. Throws Error.
doca_uar& uar_of(const doca_verbs_context& context, doca_uar* uar);
/// Changes the state of a queue pair, as doca_verbs_qp::modify().
void modify(rdma::mlx5::DevxQueuePair& pair, const ibv_qp_attr& attributes);

/// A completion queue that the card's own commands make.
class CardCq final : public doca_verbs_cq {
 public:
  /// Throws Error.
  CardCq(doca_verbs_context& of, const doca_verbs_cq_attr& attributes);

  int poll(int most, ibv_wc* into) noexcept override;
  [[nodiscard]] Maker maker() const noexcept override { return Maker::card; }
  [[nodiscard]] std::uint32_t number() const noexcept override { return queue_.number; }

  void add(CardQp& pair);
  /// Forgets a queue pair that the card no longer has, whose completions are then dropped. Another
  /// one may get its number.
  void forget(std::uint32_t pair) noexcept;

 private:
  std::map<std::uint32_t, CardQp*> pairs_;  ///< those that complete into it, by their numbers
  Use<doca_uar> uar_;
  std::uint32_t log2_;
  memory::Range memory_;
  rdma::mlx5::CardSpace space_;
  rdma::mlx5::CardObject native_;
  kernels::rdma::CompletionQueue queue_;
};

/// A queue pair that the card's own commands make, to whose rings this posts itself.
class CardQp final : public doca_verbs_qp {
 public:
  /// Throws Error.
  CardQp(doca_verbs_context& of, const doca_verbs_qp_init_attr& from);
  CardQp& operator=(CardQp&&) = delete;
  ~CardQp() override;

  [[nodiscard]] std::uint32_t number() const noexcept override { return pair_->number(); }
  void modify(const ibv_qp_attr& attributes, int) override { doca::modify(*pair_, attributes); }
  int post_send(ibv_send_wr& first, ibv_send_wr*& bad) noexcept override;
  int post_receive(ibv_recv_wr& first, ibv_recv_wr*& bad) noexcept override;

  /// Takes a completion of the card, and makes the program's.
  ibv_wc finish(const kernels::rdma::Completion& completion) noexcept;

 private:
  /// A posted work request: at the position of its first block, or of its receive.
  struct Posted {
    std::uint64_t id = 0;
    std::uint64_t end = 0;  ///< the position behind it
  };

  int write(const ibv_send_wr& request) noexcept;

  Use<doca_uar> uar_;
  CardCq& sends_;
  CardCq& receives_;
  ibv_qp_cap capacity_;
  bool always_signaled_;
  rdma::QueueSizes sizes_;
  memory::Range memory_;
  std::optional<rdma::mlx5::DevxQueuePair> pair_;
  std::uint64_t doorbell_ = 0;
  rdma::mlx5::DoorbellRelay relay_;
  rdma::QueuePairMemory queues_;
  kernels::rdma::SendState sent_;
  kernels::rdma::ReceiveState received_;
  std::vector<Posted> requests_;  ///< of the blocks of the send queue
  std::vector<std::uint64_t> receive_ids_;
  std::vector<kernels::rdma::LocalBuffer> buffers_;  ///< of the request that is written
};

}  // namespace offload::doca
