#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <utility>

#include "core/cpu.hpp"

namespace offload::server {

/// One T that threads write and one thread takes. To look whether there is anything costs the
/// reader a load; the lock is taken only where there is.
template <class T>
class alignas(core::kCacheLinePair) Mailbox {
 public:
  /// Any thread. Calls `change`(T&), which adds to the untaken value, under the lock. Returns true
  /// if there was nothing before: then the caller must wake the reader.
  template <class Change>
  [[nodiscard]] bool put(Change change) {
    const std::lock_guard lock(mutex_);
    change(content_);
    return !has_content_.exchange(true, std::memory_order_release);  // pairs with take()
  }

  /// The reader: all that was put since it was last taken, if anything.
  [[nodiscard]] std::optional<T> take() {
    if (!has_content_.load(std::memory_order_acquire)) return std::nullopt;  // pairs with put()
    const std::lock_guard lock(mutex_);
    has_content_.store(false, std::memory_order_relaxed);  // under the lock
    return std::exchange(content_, T{});
  }

 private:
  std::atomic<bool> has_content_{false};  ///< release in put(), acquire in take()
  std::mutex mutex_;
  T content_{};
};

}  // namespace offload::server
