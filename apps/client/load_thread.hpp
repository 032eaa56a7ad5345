#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "apps/client/load_connection.hpp"
#include "core/clock.hpp"
#include "core/cpu.hpp"
#include "core/fd.hpp"
#include "progress/engine.hpp"

namespace offload::client {

/// A thread with its connections, one at least. Nothing is allocated while it runs, but for
/// responses that come in pieces on many connections at once; with nothing to send or read its
/// engine sleeps.
class alignas(core::kCacheLinePair) LoadThread final {
 public:
  /// `number` is what messages call it. `sockets`: connected, non-blocking. `pool` and `control`
  /// must outlive it.
  LoadThread(std::uint32_t number, std::vector<core::Fd> sockets, const LoadPlan& plan,
             const RequestPool& pool, const RunControl& control);

  /// Runs from now to the end: all answered, a fault, or control.stop() and at most a second more
  /// for what is due. Once.
  void run();

  /// After run().
  [[nodiscard]] const LoadResult& result() const noexcept { return share_.result; }

  /// Valid responses so far. Any thread.
  [[nodiscard]] std::uint64_t progress() const noexcept {
    return progress_.load(std::memory_order_relaxed);
  }

 private:
  /// Ends the engine's sleep, and that is all there is to it.
  class Bell final : public progress::EventHandler {
   public:
    void on_events(std::uint32_t) override {}
  };

  [[nodiscard]] bool finished() const noexcept;
  void begin_drain();
  [[nodiscard]] core::TimePoint deadline() const noexcept;
  void check_deadline();
  void check_silence(core::TimePoint now);

  LoadShare share_;
  Bell stop_bell_;
  std::vector<std::unique_ptr<LoadConnection>> connections_;
  core::TimePoint silence_check_{};  ///< no connection's deadline is before
  std::optional<core::TimePoint> drain_end_;
  bool gave_up_ = false;  ///< after a stop: what is due is not waited for any more
  std::atomic<std::uint64_t> progress_{0};
};

}  // namespace offload::client
