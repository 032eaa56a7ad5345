#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comch/transport/rdma/adapter.hpp"
#include "kernels/rdma/queue_pair.hpp"
#include "memory/range.hpp"
#include "memory/region.hpp"
#include "progress/engine.hpp"
#include "rdma/queues/queue_memory.hpp"
#include "rdma/verbs/queue_pair.hpp"

namespace offload::comch {

/// A queue pair of slots. Not connected when it is made.
class SlotPair {
 public:
  SlotPair() = default;
  SlotPair(const SlotPair&) = delete;
  SlotPair& operator=(const SlotPair&) = delete;
  virtual ~SlotPair() = default;

  [[nodiscard]] virtual rdma::QueuePair& pair() noexcept = 0;
};

/// Of one that this process or a proxy posts to by libibverbs: so many work requests at a time.
rdma::QueuePairOptions slot_pair_options(std::uint32_t sends, std::uint32_t receives) noexcept;

/// The worker's: a back end posts to its rings, in mlx5's format, and something stands behind them:
/// a card that reads them itself, or a proxy. It ends stopped. One thread, but for the rings.
class SlotRings : public SlotPair {
 public:
  /// Told why the queue has failed, in a turn of the engine.
  using OnFailed = std::function<void(const std::string& why)>;

  /// For threads of this machine.
  [[nodiscard]] virtual const kernels::rdma::SendQueue& sends() const noexcept = 0;
  /// Where these lie, as channel::ResponseWriter has it.
  [[nodiscard]] const std::shared_ptr<memory::MemoryRegion>& region() const noexcept {
    return region_;
  }
  /// The card's doorbell, that a GPU may ring in place of the one of sends(); null: there is none.
  [[nodiscard]] virtual std::uint64_t* card_register() const noexcept { return nullptr; }
  /// In words for a log.
  [[nodiscard]] virtual std::string carrier() const = 0;

  /// Connected: what is posted is carried out by turns of the engine that it was made with. Throws
  /// Error.
  virtual void start() = 0;
  /// Ends it, in bounded time: what is posted completes in error. Throws Error.
  virtual void stop() = 0;

 protected:
  /// `bytes`: of the region. Throws Error.
  explicit SlotRings(std::size_t bytes)
      : region_(std::make_shared<memory::MemoryRegion>(
            memory::RegionOptions{"slots' queue", memory::kLocalAccess | memory::Access::peer_pcie},
            std::vector{memory::allocate_range(bytes)})) {}
  [[nodiscard]] std::span<std::byte> bytes() const {
    const memory::Range& range = region_->ranges().front();
    return {range.address, range.length};
  }

 private:
  std::shared_ptr<memory::MemoryRegion> region_;
};

/// What the rings are made of; all outlives them.
struct RingParts {
  const Adapter& adapter;
  const rdma::ProtectionDomain& domain;
  progress::Engine& engine;
  std::uint32_t blocks;  ///< of the send ring, a power of two
  std::uint32_t sends;   ///< work requests that a device may have at a time

  [[nodiscard]] rdma::QueueSizes sizes() const noexcept { return {blocks, 1}; }
};

/// The rings of an mlx5 card itself; null: the device is none, or the build has no libmlx5. Throws
/// Error.
std::unique_ptr<SlotRings> make_card_rings(const RingParts& parts, SlotRings::OnFailed on_failed);
/// The card's own, or else rings in memory of this process that a proxy carries out on any device;
/// the log says why not the former, if the device is an mlx5 card. Throws Error.
std::unique_ptr<SlotRings> make_slot_rings(const RingParts& parts,
                                           const SlotRings::OnFailed& on_failed);

}  // namespace offload::comch
