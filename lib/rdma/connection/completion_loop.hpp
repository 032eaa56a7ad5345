#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "progress/engine.hpp"
#include "rdma/verbs/completion_queue.hpp"

namespace offload::rdma {

/// Whose work a completion queue tells the end of.
class CompletionSink {
 public:
  /// `number`: the lower 32 bits of the work request's wr_id.
  virtual void on_completion(std::uint32_t number, const ibv_wc& completion) = 0;
  /// There will be no more completions: the queue has overflowed or its device has failed.
  virtual void on_queue_failed() noexcept = 0;

 protected:
  ~CompletionSink() = default;
};

/// One completion queue for all connections of an engine: polled while work is under way, and
/// asleep in the engine's epoll otherwise. The upper half of a wr_id tells whose it is.
///
/// One thread, that of its engine, which outlives it, as the device does; it outlives its sinks.
class CompletionLoop final : progress::Pollable, progress::EventHandler {
 public:
  /// Completions taken in one turn; then the others on the engine have theirs.
  static constexpr std::size_t kAtOnce = 64;

  /// `depth`: of all sinks together. Throws Error.
  CompletionLoop(const DeviceContext& device, progress::Engine& engine, std::uint32_t depth);
  CompletionLoop(const CompletionLoop&) = delete;
  CompletionLoop& operator=(const CompletionLoop&) = delete;
  ~CompletionLoop();

  [[nodiscard]] CompletionQueue& queue() noexcept { return queue_; }

  /// Takes in a sink that will have at most `depth` completions pending, and returns the upper half
  /// of its wr_ids. Throws Error: full if there is no room for so many,
  /// driver if the queue has failed.
  std::uint32_t add(CompletionSink& sink, std::uint32_t depth);
  /// What still comes for it is dropped. `under_way`: work that was begun and not ended.
  void remove(std::uint32_t tag, std::uint32_t depth, std::size_t under_way) noexcept;

  /// So much work was handed to the device: it is polled for until as much has ended.
  void began(std::size_t count) noexcept;
  void ended(std::size_t count) noexcept { under_way_ -= count; }
  /// Takes what the queue has now, all of it.
  void drain();

 private:
  /// Of a sink, or of none. A tag is a place and, above it, how often that was taken, modulo 4096:
  /// what still comes for the ones before is nobody's.
  struct Place {
    CompletionSink* sink = nullptr;
    std::uint32_t tag = 0;
  };
  static constexpr unsigned kPlaceBits = 20;
  static constexpr std::uint32_t kPlaceMask = (1U << kPlaceBits) - 1;

  bool poll() override;
  [[nodiscard]] progress::Expecting expecting() const override {
    return progress::Expecting::from_device;
  }
  core::Duration arm() override;
  void disarm() override {}  // nothing can take it back: the event will come, and be dropped
  void on_events(std::uint32_t epoll_events) override;

  progress::Engine* engine_;
  CompletionChannel channel_;
  CompletionQueue queue_;
  std::uint32_t room_;
  std::vector<Place> places_;
  std::vector<std::uint32_t> free_;  ///< places
  std::size_t under_way_ = 0;
  bool armed_ = false;  ///< and no event has come since
  bool failed_ = false;
  std::array<ibv_wc, kAtOnce> completions_{};
};

}  // namespace offload::rdma
