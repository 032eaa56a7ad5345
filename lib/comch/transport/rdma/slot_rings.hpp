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

/// A queue pair for slots, not connected when it is made.
class SlotPair {
 public:
  SlotPair& operator=(SlotPair&&) = delete;
  virtual ~SlotPair() = default;

  [[nodiscard]] virtual rdma::QueuePair& pair() noexcept = 0;
};

/// Returns the options of a pair to which this process or an emulator posts with libibverbs.
/// `sends`, `receives`: the maximum numbers of work requests at a time.
rdma::QueuePairOptions slot_pair_options(std::uint32_t sends, std::uint32_t receives) noexcept;

/// The worker's queue pair: a back end posts to its rings, in the format of mlx5, and a card or a
/// emulator reads them. The destructor stops it. One thread, except for the rings.
class SlotRings : public SlotPair {
 public:
  /// Called with the reason when the queue has failed, in a turn of the engine.
  using OnFailed = std::function<void(const std::string& why)>;

  /// Returns the send queue for threads of this machine.
  [[nodiscard]] virtual const kernels::rdma::SendQueue& sends() const noexcept = 0;
  /// Returns the memory of the send queue, for channel::ResponseWriter.
  [[nodiscard]] const std::shared_ptr<memory::MemoryRegion>& region() const noexcept {
    return region_;
  }
  /// Returns the card's doorbell, which a GPU may ring instead of that of sends(); null if there is
  /// none.
  [[nodiscard]] virtual std::uint64_t* card_register() const noexcept { return nullptr; }
  /// Returns a description for the log.
  [[nodiscard]] virtual std::string carrier() const = 0;

  /// Starts a connected pair: turns of its engine carry out what is posted. Throws Error.
  virtual void start() = 0;
  /// Stops the pair in bounded time: posted entries complete in error. Throws Error.
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

/// The parts that rings are made of, which all outlive them.
struct RingParts {
  Adapter& adapter;
  const rdma::ProtectionDomain& domain;
  progress::Engine& engine;
  std::uint32_t blocks;  ///< of the send ring, a power of two
  std::uint32_t sends;   ///< the maximum of work requests in a device

  [[nodiscard]] rdma::QueueSizes sizes() const noexcept { return {blocks, 1}; }
};

/// Makes rings that an mlx5 card reads; null if the device is not an mlx5 card, or the build has no
/// libmlx5. Throws Error.
std::unique_ptr<SlotRings> make_card_rings(const RingParts& parts, SlotRings::OnFailed on_failed);
/// Makes the card's rings, or else rings in memory of this process that an emulator carries out on
/// any device. If the device is an mlx5 card, logs why its rings cannot be used. Throws Error.
std::unique_ptr<SlotRings> make_slot_rings(const RingParts& parts,
                                           const SlotRings::OnFailed& on_failed);

}  // namespace offload::comch
