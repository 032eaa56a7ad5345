#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "apps/client/event_flag.hpp"
#include "apps/client/load_connection.hpp"
#include "core/clock.hpp"
#include "core/cpu.hpp"
#include "net/stream.hpp"
#include "progress/engine.hpp"

namespace offload::client {

/// The work of a load thread: its connections, one or more, on an engine that sleeps when there is
/// nothing to send or receive. It allocates only if responses are incomplete on more than a few
/// connections at once.
class alignas(core::kCacheLinePair) LoadThread final {
 public:
  /// `number`: for messages. `streams`: connected. `pool` and `control` must outlive
  /// it.
  LoadThread(std::uint32_t number, std::vector<net::Stream> streams, const LoadPlan& plan,
             const RequestPool& pool, const RunControl& control);

  /// Runs until every request is answered, a fault, or at most a second after control.stop(), for
  /// outstanding responses. To be called once.
  void run();

  /// The results, after run().
  [[nodiscard]] const LoadResult& result() const noexcept { return share_.result; }

  /// The number of valid responses so far. Relaxed: only for display, it orders nothing. Any
  /// thread.
  [[nodiscard]] std::uint64_t progress() const noexcept {
    return progress_.load(std::memory_order_relaxed);
  }

 private:
  [[nodiscard]] bool finished() const noexcept;
  void begin_drain();
  [[nodiscard]] core::TimePoint deadline() const noexcept;
  void check_deadline();
  void check_silence(core::TimePoint now);

  LoadShare share_;
  EventFlag stop_event_;  ///< ends the engine's sleep; control says whether it stops
  std::vector<std::unique_ptr<LoadConnection>> connections_;
  core::TimePoint silence_check_{};  ///< not later than the earliest deadline of a connection
  std::optional<core::TimePoint> drain_end_;
  bool gave_up_ = false;  ///< after a stop: outstanding responses are no longer awaited
  std::atomic<std::uint64_t> progress_{0};  ///< written by run() alone, relaxed
};

}  // namespace offload::client
