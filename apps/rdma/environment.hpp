#pragma once

#include <optional>

#include "apps/rdma/options.hpp"
#include "core/error.hpp"
#include "core/signals.hpp"
#include "progress/engine.hpp"
#include "rdma/connection/connection.hpp"

namespace offload::rdma_tool {

/// A signal has come.
struct Interrupted {};

/// What the connections of a run stand on, and how the run waits. One thread.
class Environment final : progress::EventHandler {
 public:
  /// `completions`: of all connections together. Throws Error.
  Environment(const Options& options, core::ShutdownSignals& signals, std::uint32_t completions);
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  ~Environment();

  [[nodiscard]] progress::Engine& engine() noexcept { return engine_; }
  [[nodiscard]] rdma::DeviceContext& device() noexcept { return device_; }
  [[nodiscard]] rdma::Registrar& registrar() noexcept { return registrar_; }
  [[nodiscard]] rdma::SharedObjects objects() noexcept {
    return {device_, domain_, registrar_, completions_};
  }
  [[nodiscard]] core::Duration timeout() const noexcept { return timeout_; }

  /// Turns the engine until `ready()`. `look`: where nothing rings, how long to sleep at most
  /// between two looks. Throws what fail() was told, Interrupted, and Error (timed_out), which says
  /// that `what` did not come.
  template <class Condition>
  void wait(Condition ready, const char* what, core::Duration look = core::Duration::max()) {
    if (ready()) return;
    turn(look);
    const core::TimePoint deadline = engine_.now() + timeout_;
    while (!ready()) {
      if (engine_.now() >= deadline) throw_late(what);
      turn(look);
    }
  }
  /// Whether waits sleep until something rings, or look all the time.
  void set_event_driven(bool event_driven) noexcept { event_driven_ = event_driven; }
  /// Lets time go by. Throws as wait does.
  void pause(core::Duration time);

  /// From callbacks, which must not throw: the run is over. The first counts.
  void fail(const core::Error& why) noexcept;
  /// The peer may go from now on.
  void close() noexcept { closing_ = true; }
  void peer_has_gone() noexcept;

 private:
  void on_events(std::uint32_t epoll_events) override;
  void turn(core::Duration look);
  void check() const;
  [[noreturn]] void throw_late(const char* what) const;

  core::ShutdownSignals& signals_;
  core::Duration timeout_;
  bool event_driven_;
  progress::Engine engine_;
  rdma::DeviceContext device_;
  rdma::ProtectionDomain domain_;
  rdma::Registrar registrar_;
  rdma::CompletionLoop completions_;
  std::optional<core::Error> failure_;
  bool interrupted_ = false;
  bool closing_ = false;
};

}  // namespace offload::rdma_tool
