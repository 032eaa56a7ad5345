#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "rdma/mlx5/devx.hpp"
#include "rdma/queues/queue_memory.hpp"
#include "rdma/verbs/queue_pair.hpp"

namespace offload::rdma::mlx5 {

/// Receives that queue pairs share, in one ring without links (an RMP of the card), with the queue
/// of their completions. kernels/rdma posts to it and polls it as to the receive queue of a pair.
///
/// Not movable. Device, domain and memory outlive it, and it outlives its queue pairs.
class DevxReceives {
 public:
  /// Returns the bytes of its QueueSpace. `entries`: a power of two, up to kMostEntries. Throws
  /// Error: invalid_value for another number.
  static std::size_t bytes_of(std::uint32_t entries);
  /// Returns the content that the QueueSpace must have before the object is made.
  static std::vector<std::byte> first_content(std::uint32_t entries);

  /// Throws Error: no_memory if the space is too small, and the device's errors.
  DevxReceives(const DeviceContext& device, const ProtectionDomain& domain, std::uint32_t entries,
               const QueueSpace& space);
  DevxReceives& operator=(DevxReceives&&) = delete;

  /// Returns the handle for a user that sees the space at `base`.
  [[nodiscard]] kernels::rdma::ReceiveQueue seen_at(void* base) const;
  [[nodiscard]] std::uint32_t number() const noexcept { return ring_.number(); }
  /// Returns the number of the queue of their completions.
  [[nodiscard]] std::uint32_t completions() const noexcept { return completions_.number(); }

 private:
  std::uint32_t entries_;
  CardSpace space_;
  CardRegisters registers_;
  CardObject completions_;
  CardObject ring_;
};

/// An RC queue pair of an mlx5 card whose rings, completions and records are in any memory that the
/// card reaches, such as that of a GPU, for kernels/rdma to post and poll. The card's own commands
/// make it and change its state. CardQueuePair does the same with verbs, in memory of the host.
///
/// Not movable. Device, domain and memory outlive it. One thread makes it and changes its state.
class DevxQueuePair {
 public:
  /// The card's numbers of the queues of completions; they may be equal.
  struct CompletionNumbers {
    std::uint32_t sends = 0;
    std::uint32_t receives = 0;
  };
  /// Rings and records that its owner has placed in its own spaces.
  struct Places {
    std::uint32_t rings_space = 0;  ///< number of a CardSpace
    std::uint64_t rings = 0;        ///< the receives, then the sends
    std::uint32_t record_space = 0;
    std::uint64_t record = 0;
  };
  struct Options {
    /// If true, a record has the number of published entries. Else the doorbell alone has it, and
    /// the machine must have write combining.
    bool has_record = true;
    /// If true, the card looks for room before it writes a completion. Else it needs no record of
    /// those that were polled, and a fault of the owner overwrites completions.
    bool checks_overrun = true;
    /// Replaces its receive queue and the queue of its completions.
    const DevxReceives* shared = nullptr;
    /// Replaces its registers; without a record they are of no other queue pair.
    const CardRegisters* registers = nullptr;
    /// Replace the queues of its completions, which other queue pairs may use too.
    std::optional<CompletionNumbers> completions{};
    /// Replace its space, which then is empty; with registers and queues of completions.
    std::optional<Places> places{};
  };

  /// Returns the bytes of its QueueSpace. Throws Error: invalid_value for invalid sizes.
  static std::size_t bytes_of(const QueueSizes& sizes);
  /// Returns the content that the QueueSpace must have before the object is made.
  static std::vector<std::byte> first_content(const QueueSizes& sizes);

  /// `sizes`: what it takes at least. Throws Error: not_supported for a device that is no mlx5 card
  /// or cannot do what `options` want, no_memory if the space is too small, and the device's
  /// errors.
  DevxQueuePair(const DeviceContext& device, const ProtectionDomain& domain,
                const QueueSizes& sizes, const QueueSpace& space, const Options& options);
  DevxQueuePair(const DeviceContext& device, const ProtectionDomain& domain,
                const QueueSizes& sizes, const QueueSpace& space)
      : DevxQueuePair(device, domain, sizes, space, Options{}) {}
  DevxQueuePair& operator=(DevxQueuePair&&) = delete;

  /// Takes it from RESET to RTS. Throws Error: not_supported for a global route over InfiniBand.
  void connect(const RtrAttributes& rtr, const RtsAttributes& rts = {});
  /// The steps of connect(), RESET → INIT → RTR → RTS, which the card refuses in another state.
  /// `access`: what the peer may do; only the remote flags count. Throw Error.
  void initialize(std::uint8_t port_num, memory::Access access);
  void ready_to_receive(const RtrAttributes& rtr);
  void ready_to_send(const RtsAttributes& rts);
  /// Any state → RESET, from which it can be connected again. The owner must then set both words of
  /// the record to 0, and begin at the first entries of its rings. The rings of completions and the
  /// owner's count of them go on. Throws Error.
  void reset();
  /// Any state → ERR: outstanding work completes as flushed. Throws Error.
  void fail();

  [[nodiscard]] std::uint32_t number() const noexcept { return pair_.number(); }
  /// Returns the handles for a user that sees the space at `base`, and the register at `doorbell`.
  /// The receive queue is empty if it is shared, and queues of completions that were replaced are.
  [[nodiscard]] QueuePairMemory seen_at(void* base, std::uint64_t* doorbell) const;
  /// Returns the doorbell, as the CPU sees it. Without a record its memory is write-combining.
  [[nodiscard]] std::uint64_t* card_register() const noexcept {
    return registers().doorbell(options_.has_record);
  }
  /// Returns whether its entries may wait for completions of other queues.
  [[nodiscard]] bool waits_for_completions() const noexcept {
    return abilities_.waits_for_completions;
  }

 private:
  [[nodiscard]] const CardRegisters& registers() const noexcept {
    return own_registers_ ? *own_registers_ : *options_.registers;
  }
  void make_pair(const DeviceContext& device, std::uint32_t domain);
  void set_path(DevxCommand& command, const ibv_ah_attr& path);

  ibv_pd* domain_;
  QueueSizes sizes_;
  Options options_;
  CardAbilities abilities_;
  std::optional<CardSpace> space_;  ///< none: it has places
  std::optional<CardRegisters> own_registers_;
  CardObject sends_;
  CardObject receives_;
  CardObject pair_;
};

}  // namespace offload::rdma::mlx5
