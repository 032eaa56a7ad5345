#pragma once

#include <infiniband/mlx5dv.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/rdma/queue_pair.hpp"
#include "rdma/mlx5/devx_command.hpp"
#include "rdma/verbs/protection_domain.hpp"

/// Objects of an mlx5 card that are made by its own commands (devx), so that their rings lie in any
/// memory that the card reaches, such as that of a GPU.
namespace offload::rdma::mlx5 {

/// The abilities that a card reports (QUERY_HCA_CAP).
struct CardAbilities {
  bool waits_for_completions = false;  ///< entries of kernels::rdma::wait_for_completion()
  bool waits_for_times = false;        ///< entries of kernels::rdma::wait_for_time()
  bool rings_without_record = false;   ///< a doorbell alone hands entries over
};

/// Throws Error: not_supported for a device that is no mlx5 card or takes no such commands.
CardAbilities query_abilities(const DeviceContext& device);

/// Memory for rings and records, which its owner has filled before with first_content() of the
/// object that it is for. It outlives the objects in it.
struct QueueSpace {
  void* address = nullptr;   ///< of the CPU, from the begin of a page; unused with a dma-buf
  std::size_t size = 0;      ///< bytes
  int dma_buf = -1;          ///< its descriptor
  std::uint64_t offset = 0;  ///< in the dma-buf, of a page
};

/// The alignment of rings in a QueueSpace, a page of the card.
inline constexpr std::size_t kRingAlignment = 4096;
/// Returns the bytes of the whole pages that hold `bytes`.
constexpr std::size_t whole_pages(std::size_t bytes) noexcept {
  return (bytes + kRingAlignment - 1) / kRingAlignment * kRingAlignment;
}

/// A QueueSpace that the card knows (UMEM). Move-only; the device outlives it.
class CardSpace {
 public:
  /// Throws Error: not_supported for a device that takes no devx commands, and the device's errors.
  CardSpace(const DeviceContext& device, const QueueSpace& space);
  [[nodiscard]] std::uint32_t number() const noexcept { return native_->umem_id; }

 private:
  Handle<mlx5dv_devx_umem, mlx5dv_devx_umem_dereg> native_;
};

/// The kind of a page of registers.
enum class RegisterKind : std::uint8_t {
  shared,     ///< not cached; libmlx5 gives the same page to all
  dedicated,  ///< not cached, and no other queue pair rings it; libmlx5 may not have it
  combining,  ///< the same, with write combining
};

/// A page of the card's registers (UAR). Move-only; the device outlives it.
class CardRegisters {
 public:
  /// Throws Error.
  explicit CardRegisters(const DeviceContext& device, RegisterKind kind = RegisterKind::shared);
  [[nodiscard]] std::uint32_t number() const noexcept { return native_->page_id; }
  /// Returns the register of send queues. `has_record`: whether their entries are counted in a
  /// record.
  [[nodiscard]] std::uint64_t* doorbell(bool has_record) const noexcept;

 private:
  static int free(mlx5dv_devx_uar* registers);
  Handle<mlx5dv_devx_uar, free> native_;
};

/// An object that was made by a command. Move-only; the device outlives it.
class CardObject {
 public:
  CardObject() = default;
  /// `what`: "a completion queue", for errors. Throws Error.
  CardObject(const DeviceContext& device, DevxCommand& command, DevxOpcode opcode,
             const char* what);
  [[nodiscard]] std::uint32_t number() const noexcept { return number_; }
  /// Throws Error.
  template <std::size_t size>
  void change(DevxMessage<size>& command, DevxOpcode opcode, const char* what) {
    command.set(kOpcode, static_cast<std::uint16_t>(opcode));
    command.set(kNumber, number_);
    change(command.data(), size, what);
  }

 private:
  void change(const void* command, std::size_t size, const char* what);

  Handle<mlx5dv_devx_obj, mlx5dv_devx_obj_destroy> native_;
  std::uint32_t number_ = 0;
};

/// The place of a ring and of its record in a QueueSpace, in bytes from its begin.
struct RingPlace {
  std::size_t entries = 0;
  std::size_t record = 0;
};

/// Makes the first content of entries for completions.
void mark_fresh(std::span<kernels::rdma::Cqe> entries);

/// Makes a completion queue of 2^`log2` entries of 64 bytes. `checks_overrun`: the card compares
/// the record before each completion, and the queue fails if there is no room. Throws Error.
CardObject make_card_completions(const DeviceContext& device, const CardSpace& space,
                                 const CardRegisters& registers, const RingPlace& place,
                                 std::uint32_t log2, bool checks_overrun = true);

/// Returns the number of a protection domain on the card. Throws Error.
std::uint32_t number_of(const ProtectionDomain& domain);

}  // namespace offload::rdma::mlx5
