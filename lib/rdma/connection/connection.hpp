#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "progress/context.hpp"
#include "rdma/connection/completion_loop.hpp"
#include "rdma/connection/connection_descriptor.hpp"
#include "rdma/connection/operation.hpp"
#include "rdma/connection/pairing.hpp"
#include "rdma/connection/work_queue.hpp"
#include "rdma/verbs/queue_pair.hpp"
#include "rdma/verbs/registrar.hpp"

namespace offload::rdma {

/// What connections stand on, and may share. All of it outlives them.
struct Endpoint {
  const DeviceContext& device;
  const ProtectionDomain& domain;
  const Registrar& registrar;  ///< of that domain
  CompletionLoop& completions;
};

struct ConnectionOptions : PathOptions {
  QueuePairOptions queues;  ///< transport rc or uc
  /// What the peer may do to memory that it has keys of.
  memory::Access access = memory::kRemoteAccess;
};

/// One end of a reliable or unreliable connection: a context whose tasks are the operations.
///
///     connection.connect(engine);      // and its task pools
///     connection.start();              // a queue pair: receives can be submitted
///     send(connection.descriptor().encode());
///     connection.connect_to(ConnectionDescriptor::decode(received));
///     ...                              // everything can be submitted
///     connection.stop();
///
/// What is submitted with submit_unflushed is posted by flush with one doorbell, and the device
/// tells the end of such a batch with one completion. An operation that the network fails breaks
/// the connection: what is under way fails, and what is submitted after is not_connected until it
/// has been stopped and started, and connected anew.
///
/// Submission says: not_connected; full when as many tasks are under way as the queue is deep;
/// invalid_value for buffers that are not registered, have too many pieces, or do not fit the
/// lengths; not_permitted for a destination in a region without local_write; not_supported for
/// what the transport or the device does not have, and for receives where they are shared.
class Connection final : public progress::Context, CompletionSink {
 public:
  /// Throws Error (invalid_value) for options that name no connection.
  Connection(const Endpoint& endpoint, const ConnectionOptions& options,
             std::string name = "connection");
  ~Connection() override;

  /// What the peer needs for connect_to. Throws Error (bad_state) unless it is running.
  [[nodiscard]] ConnectionDescriptor descriptor() const;
  /// Throws Error: bad_state unless it is running and not connected, else as Pairing::connect.
  void connect_to(const ConnectionDescriptor& peer,
                  std::optional<std::uint32_t> first_packet = std::nullopt);
  /// Whether operations are taken: since connect_to, until one failed or stop().
  [[nodiscard]] bool connected() const noexcept;

  /// The queue pair, for what is not here; null while it is idle or broken.
  [[nodiscard]] const QueuePair* queue_pair() const noexcept { return queue_ ? &*queue_ : nullptr; }

 private:
  Step on_start() override;
  Step on_stop() noexcept override;
  void on_abandon() noexcept override { end_queue(); }
  core::Status on_submit(progress::Task& task) noexcept override;
  void on_flush() noexcept override;
  bool on_poll(std::size_t most) override;
  [[nodiscard]] progress::Expecting expecting() const override {
    return progress::Expecting::nothing;  // the completion loop expects
  }
  core::Duration arm() override;
  void on_completion(std::uint32_t number, const ibv_wc& completion) override;
  void on_queue_failed() noexcept override;

  void require_queue(const char* action) const;
  core::Status prepare_receive(ReceiveTask& task) noexcept;
  core::Status prepare_send(Operation& task) noexcept;
  core::Status fill(const SendTask& task, ibv_send_wr& request) noexcept;
  core::Status fill(const WriteTask& task, ibv_send_wr& request) noexcept;
  core::Status fill(const ReadTask& task, ibv_send_wr& request) noexcept;
  core::Status fill(const CompareAndSwapTask& task, ibv_send_wr& request) noexcept;
  core::Status fill(const FetchAndAddTask& task, ibv_send_wr& request) noexcept;
  core::Status fill(const RemoteSyncEventTask& task, ibv_send_wr& request) noexcept;
  core::Status fill_atomic(memory::Buffer* destination, const RemotePlace& at,
                           ibv_send_wr& request) noexcept;
  core::Status gather(const memory::Buffer* source, ibv_send_wr& request,
                      std::uint64_t& length) noexcept;
  [[nodiscard]] bool has_shared_receives() const noexcept {
    return options_.queues.shared_receives != nullptr;
  }
  [[nodiscard]] bool has_reads() const noexcept {
    return pairing_->reads_out() != 0 && queue_->transport() == Transport::rc;
  }
  [[nodiscard]] bool has_atomics() const noexcept {
    return has_reads() && endpoint_.device.atomics() != Atomics::none;
  }
  template <class Request>
  void on_ended(WorkQueue<Request>& queue, std::uint32_t number, const ibv_wc& completion);
  void end_task(Operation& task, const ibv_wc* completion);

  [[nodiscard]] std::size_t under_way() const noexcept {
    return sends_.under_way() + receives_.under_way();
  }
  [[nodiscard]] std::uint32_t depth() const noexcept {
    return static_cast<std::uint32_t>(sends_.depth() + receives_.depth());
  }
  /// While stopping: on_completion may end it before, if no receives are shared.
  [[nodiscard]] core::TimePoint flush_end() const noexcept {
    return under_way() != 0 ? flush_deadline_ : shared_flush_end_;
  }
  void end_queue() noexcept;

  Endpoint endpoint_;
  ConnectionOptions options_;
  WorkQueue<ibv_send_wr> sends_;
  WorkQueue<ibv_recv_wr> receives_;
  std::optional<QueuePair> queue_;    ///< while it is not idle, unless it is broken
  std::optional<Pairing> pairing_;    ///< once it was started
  std::uint32_t tag_ = 0;             ///< the upper half of its wr_ids
  bool failed_ = false;               ///< an operation has, and the queue pair with it
  bool lost_ = false;                 ///< nothing more will be told: the queue pair is to be ended
  core::TimePoint flush_deadline_;    ///< while stopping
  core::TimePoint shared_flush_end_;  ///< while stopping
};

}  // namespace offload::rdma
