#pragma once

#include <atomic>
#include <string>

#include "channel/channel_memory.hpp"

namespace offload::comch {

/// The worker's end of a channel that a back end's own RDMA writes carry: the server writes
/// requests into this machine's slots, and the back end posts the writes of its responses with
/// writer(). Made on the session's thread, then the thread's whose engine it was made with.
class SlotPath {
 public:
  SlotPath() = default;
  SlotPath(const SlotPath&) = delete;
  SlotPath& operator=(const SlotPath&) = delete;
  virtual ~SlotPath() = default;

  /// For the back end, on any thread, as long as this lives.
  [[nodiscard]] virtual const channel::ResponseWriter& writer() const noexcept = 0;
  /// What the back end has posted and posts from now on is carried out by turns of the engine.
  /// Throws Error.
  virtual void start() = 0;
  /// Ends it, in bounded time: what is posted completes in error, so that no back end waits.
  virtual void stop() noexcept = 0;

  /// Why the path has ended; null while it has not. Any thread.
  [[nodiscard]] const std::string* failure() const noexcept {
    // Acquire: pairs with fail(), the reason is there.
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
