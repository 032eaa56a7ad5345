#pragma once

#include <optional>
#include <string>

#include "rdma/mlx5/doorbell.hpp"
#include "rdma/mlx5/handles.hpp"
#include "rdma/verbs/queue_pair.hpp"

namespace offload::rdma::mlx5 {

/// The one that rings the doorbell of a queue at the card.
enum class DoorbellRinger : std::uint8_t {
  gpu,    ///< writes to the card's register
  relay,  ///< a thread, which calls CardQueuePair::relay()
};

/// The traffic of a CardQueuePair.
enum class CardTraffic : std::uint8_t {
  messages,  ///< between two connected queue pairs (RC)
  frames,    ///< raw packets: of Ethernet, as kernels/rdma/ethernet.hpp writes them
  /// Raw packets. Rules may choose frames that this context sent, too.
  frames_and_own,
};

/// A queue pair of an mlx5 card, RC or for raw packets, whose rings, completions and records are in
/// memory of the caller, for kernels/rdma to post and poll. libmlx5 makes it and changes its state,
/// with ordinary verbs; libibverbs is not used to post or poll. The register of its doorbell is not
/// shared (ibv_alloc_td), unless the device refuses one with write combining: then all queue pairs
/// of the context share the one without.
///
/// One for raw packets is ready to send and to receive when it is made.
///
/// Not movable. Device, domain and memory outlive it. One thread makes it, connects it and calls
/// relay(); kernels/rdma has the rules for posting and polling.
class CardQueuePair {
 public:
  /// `sizes`: what it takes at least. Throws Error: not_supported for a device that is no mlx5 card
  /// or makes queues of another form, no_memory if the memory is too small, not_permitted for raw
  /// packets without CAP_NET_RAW, and the device's errors.
  CardQueuePair(const DeviceContext& device, const ProtectionDomain& domain,
                const QueueSizes& sizes, SeenMemory memory,
                CardTraffic traffic = CardTraffic::messages);
  CardQueuePair& operator=(CardQueuePair&&) = delete;

  /// To be connected, by a Pairing or by librdmacm's parameters.
  [[nodiscard]] QueuePair& queue_pair() noexcept { return *pair_; }
  [[nodiscard]] const QueuePair& queue_pair() const noexcept { return *pair_; }
  /// For threads of a CPU, whose doorbells relay() carries on.
  [[nodiscard]] const QueuePairMemory& host() const noexcept { return host_; }
  /// For a kernel. Throws Error: bad_state where no GPU sees the memory.
  [[nodiscard]] QueuePairMemory device() const;
  /// Returns the card's doorbell, for a GPU that can access it in another way.
  [[nodiscard]] std::uint64_t* card_register() const noexcept { return card_register_; }
  /// Returns whether the register's page is write-combining, so that the card offers BlueFlame.
  [[nodiscard]] bool combines_writes() const noexcept { return combines_writes_; }
  /// Returns why the device refused a register with write combining; empty if it did not.
  [[nodiscard]] const std::string& why_refused() const noexcept { return why_refused_; }
  /// Returns the ringer for a kernel.
  [[nodiscard]] DoorbellRinger ringer() const noexcept {
    return device_doorbell_ == nullptr ? DoorbellRinger::relay : DoorbellRinger::gpu;
  }
  /// Takes one look at the word that host(), and device() with DoorbellRinger::relay, ring; returns
  /// whether the card was rung. To be called until it was, after each post.
  bool relay() noexcept { return relay_->relay(); }

 private:
  static int end_thread_domain(ibv_td* domain);
  using CompletionHandle = Handle<ibv_cq, ibv_destroy_cq>;

  int make_thread_domain(ibv_context* context);
  CompletionHandle make_completions(ibv_context* context, std::uint32_t places);
  void make_pair(ibv_context* context, const QueueSizes& sizes, CardTraffic traffic);
  NativeQueues ask_libmlx5();
  void choose_ringer();

  SeenMemory memory_;
  Arena arena_;
  Handle<ibv_td, end_thread_domain> thread_;
  Handle<ibv_pd, ibv_dealloc_pd> parent_;
  CompletionHandle sends_;
  CompletionHandle receives_;
  std::optional<QueuePair> pair_;
  QueuePairMemory host_{};
  std::uint64_t* card_register_ = nullptr;
  bool combines_writes_ = false;
  std::string why_refused_;
  std::uint64_t* device_doorbell_ = nullptr;
  std::optional<DoorbellRelay> relay_;
};

}  // namespace offload::rdma::mlx5
