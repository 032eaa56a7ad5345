#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "memory/range.hpp"

namespace offload::memory {

/// A range that is in physical memory, and stays there where the system allows: no access to it
/// finds a page missing. Move-only. The range outlives it.
class Pinning {
 public:
  /// Touches every page, writing none (nobody else may write plainly meanwhile), and locks them.
  /// A range that is not the CPU's to reach is left alone.
  explicit Pinning(const Range& range) noexcept;
  Pinning(Pinning&& other) noexcept
      : address_(std::exchange(other.address_, nullptr)),
        length_(std::exchange(other.length_, 0)),
        lock_error_(other.lock_error_) {}
  Pinning& operator=(Pinning&&) = delete;
  Pinning(const Pinning&) = delete;
  Pinning& operator=(const Pinning&) = delete;
  /// Unlocks. Pages that another pinning shares are unlocked with it.
  ~Pinning();

  /// Why the pages could not be locked, an errno; 0 if they are, or need not be.
  [[nodiscard]] int lock_error() const noexcept { return lock_error_; }

 private:
  std::byte* address_ = nullptr;  ///< of what is locked
  std::size_t length_ = 0;
  int lock_error_ = 0;
};

/// Pins all of them. What could not be locked is a warning in the log that names `object`.
std::vector<Pinning> pin_all(std::span<const Range> ranges, std::string_view object);

}  // namespace offload::memory
