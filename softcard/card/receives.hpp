#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/rdma/queue_pair.hpp"

namespace offload::rdma::model {

/// The memory of receives. A queue pair's are a ring; those that queue pairs share are a list,
/// whose entries begin with the index of the next one.
struct ReceiveLayout {
  const std::byte* entries = nullptr;
  std::uint32_t count = 0;  ///< a power of two
  std::uint32_t shift = 4;  ///< of an entry's bytes: 4 to 9
  bool is_list = false;
  const std::uint32_t* record = nullptr;  ///< how many were posted, 16 bits
};

/// A receive that was read.
struct Receive {
  static constexpr std::uint32_t kMostBuffers = 32;

  std::uint16_t counter = 0;  ///< as its completion names it
  std::uint32_t buffer_count = 0;
  std::array<kernels::rdma::LocalBuffer, kMostBuffers> buffers;

  [[nodiscard]] std::span<const kernels::rdma::LocalBuffer> all() const {
    return {buffers.data(), buffer_count};
  }
  [[nodiscard]] std::uint64_t length() const;
};

/// The card's side of a queue of receives. The owner may change it at any time. One thread.
class Receives {
 public:
  explicit Receives(const ReceiveLayout& layout) : layout_(layout) {}

  [[nodiscard]] std::span<const std::uint32_t> record() const noexcept {
    return {layout_.record, 1};
  }
  /// Returns the memory of the entry that take() reads.
  [[nodiscard]] std::span<const std::byte> oldest() const noexcept;

  /// Reads the record. Returns the number of receives to take, 0 after a fault.
  std::uint32_t look() noexcept;
  /// Takes the oldest. Precondition: look() has found one.
  Receive take() noexcept;

  /// Return how many receives have been taken, and how many the record had when it was read last.
  [[nodiscard]] std::uint64_t taken() const noexcept { return taken_; }
  [[nodiscard]] std::uint64_t posted() const noexcept { return end_; }

  /// The record was beyond the queue.
  [[nodiscard]] bool has_fault() const noexcept { return has_fault_; }

  /// An event is due once when fewer than this are left; 0: never.
  void set_limit(std::uint32_t limit) noexcept { limit_ = limit; }
  /// Returns whether the event is due; it is not again before the limit is set.
  bool reached_limit() noexcept;

 private:
  [[nodiscard]] std::uint32_t next_index() const noexcept {
    return layout_.is_list ? head_ : static_cast<std::uint32_t>(taken_ & (layout_.count - 1));
  }
  [[nodiscard]] const kernels::rdma::Segment& segment(std::uint32_t index,
                                                      std::uint32_t at) const noexcept;

  ReceiveLayout layout_;
  std::uint64_t end_ = 0;
  std::uint64_t taken_ = 0;
  std::uint32_t head_ = 0;  ///< of the list
  std::uint32_t limit_ = 0;
  bool has_fault_ = false;
};

}  // namespace offload::rdma::model
