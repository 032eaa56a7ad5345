#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "memory/range.hpp"

namespace offload::memory {

/// The deleter of `length` bytes of locked memory: unlocks the pages, also for another Pinning of
/// the same pages (mlock(2) does not nest).
struct Unlock {
  std::size_t length = 0;
  void operator()(std::byte* address) const noexcept;
};

/// A range brought into physical memory and, where the system allows it, locked there (mlock(2)),
/// so that no access to it causes a page fault. Move-only. The range must outlive it.
class Pinning {
 public:
  /// Touches every page without changing it, and locks them; no other thread may write to the range
  /// meanwhile. Leaves device memory and dma-bufs alone.
  explicit Pinning(const Range& range) noexcept;
  /// The errno of mlock; 0 if the pages are locked, or need not be.
  [[nodiscard]] int lock_error() const noexcept { return lock_error_; }

 private:
  std::unique_ptr<std::byte, Unlock> locked_;  ///< the locked pages; null: none
  int lock_error_ = 0;
};

/// Pins all ranges. Logs a warning that names `object` if some could not be locked.
std::vector<Pinning> pin_all(std::span<const Range> ranges, std::string_view object);

}  // namespace offload::memory
