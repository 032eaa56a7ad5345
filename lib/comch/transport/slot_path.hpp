#pragma once

#include <atomic>
#include <string>

#include "channel/channel_memory.hpp"

namespace offload::comch {

/// The worker's end of a channel whose responses the back end sends with RDMA writes: the server
/// writes requests into the slots of this machine, and the back end posts the writes of its
/// responses with writer(). The session's thread makes it; then the thread of its engine uses it.
class SlotPath {
 public:
  SlotPath& operator=(SlotPath&&) = delete;
  virtual ~SlotPath() = default;

  /// Returns the writer for the back end; any thread may use it while this object lives.
  [[nodiscard]] virtual const channel::ResponseWriter& writer() const noexcept = 0;
  /// From now on, turns of the engine carry out the writes that the back end has posted and posts.
  /// Throws Error.
  virtual void start() = 0;
  /// Stops the path in bounded time: posted writes complete in error, so that no back end waits.
  virtual void stop() noexcept = 0;

  /// Returns why the path has ended; null while it has not. Any thread.
  [[nodiscard]] const std::string* failure() const noexcept {
    // Acquire: pairs with fail(), so that the reason is visible.
    return failed_.load(std::memory_order_acquire) ? &reason_ : nullptr;
  }

 protected:
  void fail(const std::string& reason) {
    if (failed_.load(std::memory_order_relaxed)) return;  // its own thread's
    reason_ = reason;
    failed_.store(true, std::memory_order_release);  // pairs with failure()
  }

 private:
  std::string reason_;
  std::atomic<bool> failed_{false};  ///< release in fail(), acquire in failure()
};

}  // namespace offload::comch
