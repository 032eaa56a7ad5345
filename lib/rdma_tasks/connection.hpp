#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "progress/context.hpp"
#include "rdma/path/connection_descriptor.hpp"
#include "rdma/path/pairing.hpp"
#include "rdma/verbs/completion_loop.hpp"
#include "rdma/verbs/queue_pair.hpp"
#include "rdma_tasks/operation.hpp"
#include "rdma_tasks/work_queue.hpp"
#include "rdma_tasks/work_request.hpp"

namespace offload::rdma {

/// The device objects that connections share. All of them outlive the connections.
struct SharedObjects {
  const DeviceContext& device;
  const ProtectionDomain& domain;
  const RdmaRegistrar& registrar;  ///< of that domain
  CompletionLoop& completions;
};

struct ConnectionOptions : PathOptions {
  QueuePairOptions queues;  ///< qp_type rc or uc
  /// The peer's access to memory whose keys it has.
  memory::Access access = memory::kRemoteAccess;
};

/// One end of an RC or UC connection: a context whose tasks are the operations.
///
///     connection.connect(engine);      // and its task pools
///     connection.start();              // makes the queue pair: receives can be submitted
///     send(connection.descriptor().encode());
///     connection.connect_to(ConnectionDescriptor::decode(received));
///     ...                              // any operation can be submitted
///     connection.stop();
///
/// flush() posts the tasks of submit_unflushed(): one doorbell and, because sends complete in
/// order, one completion for all sends. An operation that fails in the network breaks the
/// connection: outstanding tasks fail, and later submissions return not_connected until it has been
/// stopped, started and connected again.
///
/// Errors of submission: not_connected; full, with as many outstanding tasks as the queue has work
/// requests; invalid_value for buffers that are not registered, have too many elements or do not
/// fit the lengths; not_permitted for a destination in a region without local_write, and for access
/// that the peer did not grant; not_supported for operations that the queue pair type or the device
/// does not have, and for a receive if they are shared.
///
/// Used by the engine's thread only.
class Connection final : public progress::Context, CompletionHandler {
 public:
  /// Throws Error (invalid_value) for options that no connection can have.
  Connection(const SharedObjects& objects, const ConnectionOptions& options,
             std::string name = "connection");
  ~Connection() override;

  /// For the peer's connect_to. Throws Error (bad_state) unless it is running.
  [[nodiscard]] ConnectionDescriptor descriptor() const;
  /// Throws Error: bad_state unless it is running and not connected, else as Pairing::connect.
  void connect_to(const ConnectionDescriptor& peer,
                  std::optional<std::uint32_t> sq_psn = std::nullopt);
  /// Returns whether it accepts operations: from connect_to until one fails, or stop().
  [[nodiscard]] bool connected() const noexcept {
    return state() == State::running && queue_ && !failed_ && queue_->state() == IBV_QPS_RTS;
  }
  /// Called when connected() becomes true, at the end of connect_to, and when it becomes false: by
  /// a failure or by stop(). It must not throw, nor destroy the connection. Throws Error
  /// (bad_state) unless it is idle.
  using ConnectionCallback = std::function<void(Connection&, bool connected)>;
  void set_connection_callback(ConnectionCallback callback);

  /// Null while it is idle or broken.
  [[nodiscard]] const QueuePair* queue_pair() const noexcept { return queue_ ? &*queue_ : nullptr; }

 private:
  Step on_start() override;
  Step on_stop() noexcept override;
  void on_abandon() noexcept override { end_queue(); }
  core::Status on_submit(progress::Task& task) noexcept override;
  void on_flush() noexcept override;
  bool on_poll(std::size_t most) override;
  [[nodiscard]] progress::Expecting expecting() const override {
    return progress::Expecting::nothing;  // the completion loop does
  }
  core::Duration arm() override;
  void on_completion(std::uint32_t number, const ibv_wc& completion) override;
  void on_queue_failed() noexcept override;

  void require_queue(const char* action) const;
  void tell_disconnected() noexcept;
  core::Status prepare_receive(ReceiveTask& task) noexcept;
  core::Status prepare_send(RdmaTask& task) noexcept;
  core::Status post_receives() noexcept;
  core::Status post_sends() noexcept;
  template <class Request>
  void end_tasks(WorkQueue<Request>& queue, std::uint32_t number, const ibv_wc& completion);
  void end_task(RdmaTask& task, const ibv_wc* completion);
  void fail_task(RdmaTask& task, const ibv_wc& completion);
  void end_queue() noexcept;

  [[nodiscard]] bool shares_receives() const noexcept { return options_.queues.srq != nullptr; }
  [[nodiscard]] std::size_t outstanding() const noexcept {
    return sends_.outstanding() + receives_.outstanding();
  }
  /// Completions that it can have at a time.
  [[nodiscard]] std::uint32_t depth() const noexcept {
    return static_cast<std::uint32_t>(sends_.max_wr() + receives_.max_wr());
  }
  /// Returns the time at which a stop ends the queue pair, unless on_completion does so before.
  [[nodiscard]] core::TimePoint flush_end() const noexcept {
    return outstanding() != 0 ? flush_deadline_ : shared_flush_end_;
  }

  SharedObjects objects_;
  ConnectionOptions options_;
  WorkRequestBuilder builder_;
  WorkQueue<ibv_send_wr> sends_;
  WorkQueue<ibv_recv_wr> receives_;
  std::optional<QueuePair> queue_;    ///< while it is neither idle nor broken
  std::optional<Pairing> pairing_;    ///< since the first start
  std::uint32_t tag_ = 0;             ///< the upper half of its wr_ids
  bool failed_ = false;               ///< an operation has failed, and the queue pair with it
  bool told_connected_ = false;       ///< what connection_callback_ knows
  bool lost_ = false;                 ///< no more completions come: the queue pair must be ended
  core::TimePoint flush_deadline_;    ///< while stopping
  core::TimePoint shared_flush_end_;  ///< while stopping
  ConnectionCallback connection_callback_;
};

}  // namespace offload::rdma
