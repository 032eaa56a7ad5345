#pragma once

#include <optional>
#include <thread>

#include "apps/rdma_tasks/device/launcher.hpp"
#include "apps/rdma_tasks/options.hpp"
#include "core/error.hpp"
#include "core/signals.hpp"
#include "progress/engine.hpp"
#include "rdma_tasks/connection.hpp"

namespace offload::rdma_tool {

/// Opens the RDMA device that `selector` names, as device::find() takes it. Throws Error:
/// not_found, which says why there is no RDMA device at all.
rdma::DeviceContext open_rdma_device(const std::string& selector);

/// The device objects of a run, its engine, and its bounded waits. One thread.
class Environment final : progress::EventHandler {
 public:
  /// `completions`: those of all connections together. Throws Error.
  Environment(const Options& options, core::Signals& signals, std::uint32_t completions);
  Environment& operator=(Environment&&) = delete;
  ~Environment();

  [[nodiscard]] progress::Engine& engine() noexcept { return engine_; }
  [[nodiscard]] const rdma::DeviceContext& device() const noexcept { return device_; }
  /// Returns the limit of each wait.
  [[nodiscard]] core::Duration timeout() const noexcept { return timeout_; }
  /// Returns the access of peers to this end's memory: atomic operations only if the device has
  /// them.
  [[nodiscard]] memory::Access peer_access() const noexcept;
  /// Returns the path options of all connections.
  [[nodiscard]] const rdma::PathOptions& path() const noexcept { return path_; }
  [[nodiscard]] rdma::RdmaRegistrar& registrar() noexcept { return registrar_; }
  /// Returns the launcher of device lanes; only with --initiator gpu.
  [[nodiscard]] LaneLauncher& lanes() noexcept { return *lanes_; }
  /// Returns the initiator of the operations, in words for the report.
  [[nodiscard]] std::string initiator() const { return lanes_ ? lanes_->name() : "cpu"; }
  [[nodiscard]] rdma::SharedObjects objects() noexcept {
    return {device_, domain_, registrar_, completions_};
  }

  /// Turns the engine until `ready()`. `interval`: the longest sleep between two calls of it, for
  /// conditions without an event. Throws the Error of fail(), core::Interrupted, and Error
  /// (timed_out), which names `what` did not come.
  template <class Condition>
  void wait(Condition ready, const char* what, core::Duration interval = core::Duration::max()) {
    if (ready()) return;
    turn(interval);
    const core::TimePoint deadline = engine_.now() + timeout_;
    while (!ready()) {
      if (engine_.now() >= deadline) throw_timeout(what);
      turn(interval);
    }
  }
  /// Turns the engine until `ready()`, which bounds itself, beside threads that may need this
  /// processor. Else as wait().
  template <class Condition>
  void turn_until(Condition ready, core::Duration interval) {
    for (; !ready(); std::this_thread::yield()) turn(interval);
  }
  /// Whether waits sleep until an event, or poll.
  void set_event_driven(bool event_driven) noexcept { event_driven_ = event_driven; }
  /// Turns the engine for a time. Throws as wait does.
  void pause(core::Duration time);

  /// Ends the run with this error, from a callback, which must not throw. The first error counts.
  void fail(const core::Error& why) noexcept {
    if (!failure_) failure_ = why;
  }
  /// From now on the peer may disconnect, which is an error before.
  void close() noexcept { closing_ = true; }
  [[nodiscard]] bool closing() const noexcept { return closing_; }
  void on_peer_disconnected() noexcept;

 private:
  void on_events(std::uint32_t epoll_events) override;
  void turn(core::Duration interval);
  void check() const;
  [[noreturn]] void throw_timeout(const char* what) const;

  core::Signals& signals_;
  core::Duration timeout_;
  bool event_driven_;
  std::unique_ptr<LaneLauncher> lanes_;
  progress::Engine engine_;
  rdma::DeviceContext device_;
  rdma::PathOptions path_;
  rdma::ProtectionDomain domain_;
  rdma::RdmaRegistrar registrar_;
  rdma::CompletionLoop completions_;
  std::optional<core::Error> failure_;
  bool interrupted_ = false;
  bool closing_ = false;
};

}  // namespace offload::rdma_tool
