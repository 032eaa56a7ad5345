#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "doca/include/doca_rdma.h"
#include "doca/rdma/kernel_path.hpp"
#include "doca/rdma/rdma_device.hpp"
#include "progress/context.hpp"
#include "rdma/verbs/completion_loop.hpp"
#include "rdma_tasks/connection.hpp"
#include "rdma_tasks/shared_receives.hpp"

namespace offload::doca {

/// The most buffers of a list that a task sends or receives into.
inline constexpr std::uint32_t kMostElements = 4;
/// The most entries that a context's queues may be set to, and the most connections.
inline constexpr std::uint32_t kMostQueue = 32768;
inline constexpr std::uint32_t kMostConnections = 512;

/// The configuration of an endpoint.
struct RdmaEndpointOptions {
  rdma::ConnectionOptions connection;
  std::uint32_t most_connections = 1;
  std::uint32_t receives = 0;  ///< that all connections share; 0: messages cannot be received
};

/// The connections of one context of the C interface, with the completion queue and the receives
/// that they share. It has no tasks itself: they are those of its connections and of the shared
/// receives, which it starts and stops.
///
/// Used by the engine's thread only.
class RdmaEndpoint final : public progress::Context {
 public:
  RdmaEndpoint();
  ~RdmaEndpoint() override;

  /// Configures it, while it is idle. The device outlives it. `kernels`: the data path of kernels,
  /// or null for tasks; that of an earlier start ends.
  void configure(RdmaDevice& device, const RdmaEndpointOptions& options,
                 std::unique_ptr<RdmaKernelPath> kernels);

  /// Makes a connection and starts it. `path`: that of a connection request, if there is one.
  /// Throws Error: full with as many connections as it may have, and the errors of a connection.
  doca_rdma_connection& add(doca_rdma& rdma);
  /// Counts the connections that can still be used.
  [[nodiscard]] std::size_t live() const noexcept;
  [[nodiscard]] bool is_full() const noexcept { return live() >= options_.most_connections; }
  /// Starts the connection's queues. Throws Error.
  void start(doca_rdma_connection& connection, const rdma::PathOptions* path = nullptr);
  /// Stops a connection in the next turn, so that no callback comes outside of one.
  void stop_later(doca_rdma_connection& connection) noexcept;
  /// Has a turn, which drops what ends.
  void clean_up_later() noexcept {
    if (state() == State::running) request_turn();
  }

  /// The data path of kernels of the last start; null: there is none.
  [[nodiscard]] const RdmaKernelPath* kernels() const noexcept { return kernels_.get(); }
  /// Ends the calls of kernels.
  void end_kernels() noexcept {
    if (kernels_) kernels_->end();
  }
  /// The receives that its connections share; null without.
  [[nodiscard]] rdma::SharedReceives* receives() noexcept {
    return receives_ ? &*receives_ : nullptr;
  }
  /// The connection of a queue pair; null if there is none.
  [[nodiscard]] doca_rdma_connection* find(std::uint32_t qp_num) const noexcept;
  [[nodiscard]] std::size_t submitted() const noexcept;
  void flush_all() noexcept;

  /// Listeners by port, of connections by librdmacm.
  struct Listener;
  std::vector<std::unique_ptr<Listener>> listeners;
  std::size_t in_callbacks = 0;  ///< of connections, which must not be destroyed meanwhile

 private:
  Step on_start() override;
  Step on_stop() noexcept override;
  void on_abandon() noexcept override;
  core::Status on_submit(progress::Task&) noexcept override {
    return core::ErrorCode::not_supported;
  }
  bool on_poll(std::size_t most) override;
  [[nodiscard]] progress::Expecting expecting() const override {
    return progress::Expecting::nothing;
  }

  void clear() noexcept;
  void forget_ended() noexcept;
  [[nodiscard]] bool all_idle() const noexcept;
  [[nodiscard]] bool uses_cm() const noexcept;

  RdmaDevice* device_ = nullptr;
  RdmaEndpointOptions options_;
  std::unique_ptr<RdmaKernelPath> kernels_;          ///< outlives the connections
  std::optional<rdma::CompletionLoop> completions_;  ///< since the last start, as all below
  std::optional<rdma::SharedReceives> receives_;
  std::vector<std::unique_ptr<doca_rdma_connection>> connections_;
  /// The last connection that was started with a queue pair of each number, until it is dropped.
  std::unordered_map<std::uint32_t, doca_rdma_connection*> last_of_number_;
};

}  // namespace offload::doca
