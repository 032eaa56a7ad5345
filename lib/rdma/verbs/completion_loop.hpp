#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "progress/engine.hpp"
#include "rdma/verbs/completion_queue.hpp"

namespace offload::rdma {

/// Receives the completions of its work requests from a CompletionLoop.
class CompletionHandler {
 public:
  /// `number`: the lower 32 bits of the work request's wr_id.
  virtual void on_completion(std::uint32_t number, const ibv_wc& completion) = 0;
  /// The completion queue has overflowed or its device has failed: no more completions come.
  virtual void on_queue_failed() noexcept = 0;

 protected:
  ~CompletionHandler() = default;
};

/// A completion queue that all connections of an engine share: polled while work is outstanding,
/// and asleep in the engine's epoll otherwise. The upper half of a wr_id is the tag of its handler.
///
/// Used by the engine's thread only. Engine and device outlive it; it outlives its handlers.
class CompletionLoop final : progress::Pollable, progress::EventHandler {
 public:
  /// Completions taken in one poll, which bounds what the engine's other pollables wait for.
  static constexpr std::size_t kBatch = 64;

  /// `depth`: entries for all handlers together. Throws Error.
  CompletionLoop(const DeviceContext& device, progress::Engine& engine, std::uint32_t depth);
  CompletionLoop& operator=(CompletionLoop&&) = delete;
  ~CompletionLoop();

  [[nodiscard]] CompletionQueue& queue() noexcept { return queue_; }

  /// Adds a handler of at most `depth` outstanding work requests. Returns its tag, the upper half
  /// of its wr_ids. Throws Error: full if the queue has no room for `depth` more entries, driver if
  /// it has failed.
  std::uint32_t add(CompletionHandler& handler, std::uint32_t depth);
  /// Removes a handler, of which `outstanding` work requests have not completed. Their completions
  /// are dropped.
  void remove(std::uint32_t tag, std::uint32_t depth, std::size_t outstanding) noexcept;

  /// Counts work requests that were posted; it polls until as many have completed.
  void on_posted(std::size_t count) noexcept {
    outstanding_ += count;
    engine_->activate(*this);
  }
  void on_completed(std::size_t count) noexcept { outstanding_ -= count; }
  /// Delivers every completion that the queue has now, if work is outstanding.
  void drain();

 private:
  /// A handler, or null, and its tag: the index of the slot and, above it, the generation, which
  /// counts the slot's handlers modulo 4096. Late completions of a former handler match no tag.
  struct Slot {
    CompletionHandler* handler = nullptr;
    std::uint32_t tag = 0;
  };
  static constexpr unsigned kIndexBits = 20;
  static constexpr std::uint32_t kIndexMask = (1U << kIndexBits) - 1;

  bool poll() override;
  [[nodiscard]] progress::Expecting expecting() const override {
    return progress::Expecting::from_device;
  }
  core::Duration arm() override;
  void disarm() override {}  // verbs cannot disarm: the event will come, and be dropped
  void on_events(std::uint32_t epoll_events) override;

  progress::Engine* engine_;
  CompletionChannel channel_;
  CompletionQueue queue_;
  std::uint32_t room_;  ///< entries that no handler has
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;  ///< indices of slots
  std::size_t outstanding_ = 0;
  bool armed_ = false;  ///< armed, and no event has come since
  bool failed_ = false;
  std::array<ibv_wc, kBatch> completions_{};
};

}  // namespace offload::rdma
