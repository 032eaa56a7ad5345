#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <thread>

#include "apps/rdma_tasks/device/launcher.hpp"
#include "apps/rdma_tasks/options.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "core/signals.hpp"
#include "device/device.hpp"
#include "progress/engine.hpp"
#include "rdma/path/local_path.hpp"
#include "rdma_tasks/connection.hpp"

namespace offload::rdma_tool {

inline rdma::DeviceContext open(const std::string& selector) {
  const auto devices = device::list_devices();
  if (const auto why = device::list_rdma_devices().why_none; !why.empty()) {
    throw core::Error(core::ErrorCode::not_found, why);
  }
  return rdma::DeviceContext(device::find(devices, selector));
}

inline rdma::PathOptions path_of(const rdma::DeviceContext& device, const Options& options) {
  rdma::PathOptions path;
  if (!options.gid.empty()) path.gid.address = rdma::parse_gid(options.gid);
  rdma::mark_path(device, options.path, path);
  core::log_info("the path of all connections: {}", rdma::describe(device, path));
  return path;
}

/// The device objects of a run, its engine, and its bounded waits. One thread.
class Environment final : progress::EventHandler {
 public:
  /// `completions`: those of all connections together. Throws Error.
  Environment(const Options& options, core::Signals& signals, std::uint32_t completions)
      : signals_(signals),
        timeout_(options.timeout),
        event_driven_(options.event_driven),
        lanes_(options.initiator == Initiator::gpu ? make_launcher() : nullptr),
        device_(open(options.path.device)),
        path_(path_of(device_, options)),
        domain_(device_),
        registrar_(domain_),
        completions_(device_, engine_, completions) {
    engine_.watch(signals_.fd(), EPOLLIN, *this);
  }
  Environment& operator=(Environment&&) = delete;
  ~Environment() { engine_.unwatch(signals_.fd(), *this); }

  [[nodiscard]] progress::Engine& engine() noexcept { return engine_; }
  [[nodiscard]] rdma::DeviceContext& device() noexcept { return device_; }
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
  void pause(core::Duration time) {
    const auto end = core::Clock::now() + time;
    for (check(); core::Clock::now() < end; check()) engine_.run_once(end);
  }

  /// Ends the run with this error, from a callback, which must not throw. The first error counts.
  void fail(const core::Error& why) noexcept {
    if (!failure_) failure_ = why;
  }
  /// From now on the peer may disconnect, which is an error before.
  void close() noexcept { closing_ = true; }
  [[nodiscard]] bool closing() const noexcept { return closing_; }
  void on_peer_disconnected() noexcept {
    if (!closing_) fail({core::ErrorCode::connection_reset, "the peer has disconnected"});
  }

 private:
  void on_events(std::uint32_t /*epoll_events*/) override {
    interrupted_ = signals_.take() != 0 || interrupted_;
  }
  void turn(core::Duration interval) {
    if (event_driven_) {
      engine_.run_once(core::Clock::now() + std::min(interval, timeout_));
    } else {
      engine_.progress();
    }
    check();
  }
  void check() const {
    if (failure_) throw core::Error(*failure_);
    if (interrupted_) throw core::Interrupted{};
  }
  [[noreturn]] void throw_timeout(const char* what) const {
    throw core::Error(
        core::ErrorCode::timed_out,
        fmt::format("timed out after {1} s waiting for {0}", what, core::to_seconds(timeout_)));
  }

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
