#pragma once

#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>

#include "core/log.hpp"
#include "doca/buf.hpp"
#include "doca/device.hpp"
#include "doca/guard.hpp"
#include "doca/rdma/connection.hpp"
#include "doca/rdma/endpoint.hpp"
#include "doca/task_set.hpp"
#include "rdma_tasks/operation.hpp"

namespace offload::doca {

/// A buffer, and those linked to it, that a task in flight holds: until it is dropped.
class HeldBuffer {
 public:
  /// None may be held.
  void hold(memory::Buffer& buffer) noexcept {
    buffer_ = memory::BufferRef::share(buffer).release();
    buffer.hold();
  }
  void drop() noexcept {
    if (buffer_ == nullptr) return;
    buffer_->unhold();
    memory::BufferRef::adopt(*std::exchange(buffer_, nullptr)).reset();
  }
  [[nodiscard]] memory::Buffer* get() const noexcept { return buffer_; }

 private:
  memory::Buffer* buffer_ = nullptr;
};

/// The tasks of one kind, and their callbacks.
template <class Self>
struct TaskKind {
  using Callback = void (*)(Self* task, doca_data task_user_data, doca_data ctx_user_data);

  TaskSet<Self, typename Self::Library> tasks;
  Callback completed = nullptr;
  Callback failed = nullptr;
};

/// A task of RDMA whose kind is TaskKind<Self>, one of doca_rdma::kinds. Self has take(), which
/// gives the library's task its arguments, and deliver(), which takes its results after a success.
template <class Self, class LibraryTask>
struct RdmaTaskOf : doca_task {
  using Library = LibraryTask;

  core::Status prepare() noexcept final;
  core::Status submit(bool flush) noexcept final {
    return submit_to<typename LibraryTask::ContextType>(*this, flush);
  }
  void let_go() noexcept final {
    source_held.drop();
    destination_held.drop();
  }
  void call_back() noexcept final;
  void release() noexcept final;
  /// For the receiver of a pool.
  static void ended(progress::Task& task, void* rdma) noexcept;

  [[nodiscard]] LibraryTask& own() const noexcept { return static_cast<LibraryTask&>(*task); }
  [[nodiscard]] doca_rdma& rdma() const noexcept;
  /// Returns whether its connection was disconnected, so that its failure says nothing about
  /// others.
  [[nodiscard]] bool was_disconnected() const noexcept {
    return connection != nullptr && connection->stops;
  }

  doca_rdma_connection* connection = nullptr;  ///< null: of a receive
  const doca_buf* source = nullptr;
  doca_buf* destination = nullptr;
  HeldBuffer source_held;
  HeldBuffer destination_held;

 protected:
  ~RdmaTaskOf() = default;
  /// Holds a buffer; null is refused unless `may_be_null`.
  static bool hold(HeldBuffer& held, const doca_buf* buf, bool may_be_null = false) noexcept {
    // The const_cast is safe: a source is only read.
    auto* const buffer = buffer_of(const_cast<doca_buf*>(buf));
    if (buffer != nullptr) held.hold(*buffer);
    return buffer != nullptr || (buf == nullptr && may_be_null);
  }
};

}  // namespace offload::doca

struct doca_rdma_task_receive final
    : offload::doca::RdmaTaskOf<doca_rdma_task_receive, offload::rdma::SharedReceiveTask> {
  offload::core::Status take() noexcept;
  void deliver() noexcept;
  /// The same of the connection whose message had begun to fill it.
  [[nodiscard]] bool was_disconnected() const noexcept;

  const doca_rdma_connection* from = nullptr;  ///< of the message
};

struct doca_rdma_task_send final
    : offload::doca::RdmaTaskOf<doca_rdma_task_send, offload::rdma::SendTask> {
  offload::core::Status take() noexcept;
  void deliver() noexcept {}
};

struct doca_rdma_task_send_imm final
    : offload::doca::RdmaTaskOf<doca_rdma_task_send_imm, offload::rdma::SendTask> {
  offload::core::Status take() noexcept;
  void deliver() noexcept {}

  doca_be32_t immediate = 0;
};

struct doca_rdma_task_write final
    : offload::doca::RdmaTaskOf<doca_rdma_task_write, offload::rdma::WriteTask> {
  offload::core::Status take() noexcept;
  void deliver() noexcept;
};

struct doca_rdma_task_write_imm final
    : offload::doca::RdmaTaskOf<doca_rdma_task_write_imm, offload::rdma::WriteTask> {
  offload::core::Status take() noexcept;
  void deliver() noexcept;

  doca_be32_t immediate = 0;
};

struct doca_rdma_task_read final
    : offload::doca::RdmaTaskOf<doca_rdma_task_read, offload::rdma::ReadTask> {
  offload::core::Status take() noexcept;
  void deliver() noexcept {}
};

struct doca_rdma_task_remote_net_sync_event_get final
    : offload::doca::RdmaTaskOf<doca_rdma_task_remote_net_sync_event_get, offload::rdma::ReadTask> {
  offload::core::Status take() noexcept;
  void deliver() noexcept {}

  const doca_sync_event_remote_net* event = nullptr;
};

struct doca_rdma_task_remote_net_sync_event_notify_set final
    : offload::doca::RdmaTaskOf<doca_rdma_task_remote_net_sync_event_notify_set,
                                offload::rdma::WriteTask> {
  offload::core::Status take() noexcept;
  void deliver() noexcept {}

  const doca_sync_event_remote_net* event = nullptr;
};

/// An RdmaEndpoint with its pools of tasks.
struct doca_rdma final : doca_ctx {
  explicit doca_rdma(doca_dev& dev);

  offload::progress::Context& context() noexcept override { return endpoint; }
  [[nodiscard]] bool is_configured() const noexcept override { return true; }
  [[nodiscard]] bool has_all_tasks() const noexcept override;
  [[nodiscard]] std::size_t submitted() noexcept override { return endpoint.submitted(); }
  void flush() noexcept override { endpoint.flush_all(); }
  void configure() override;
  bool set_gpu(doca_gpu& to) override {
    gpu.emplace(to);
    return true;
  }
  [[nodiscard]] bool runs_alone() const noexcept override { return gpu.has_value(); }
  void became_idle() noexcept override { endpoint.end_kernels(); }

  offload::doca::DeviceUse device;
  std::optional<offload::doca::GpuUse> gpu;  ///< of the data path; none: tasks
  offload::doca::RdmaEndpointOptions options;
  std::uint32_t permissions = DOCA_ACCESS_FLAG_LOCAL_READ_WRITE;
  std::uint32_t receive_queue = 128;
  doca_rdma_connection_request_cb_t on_request = nullptr;
  doca_rdma_connection_established_cb_t on_established = nullptr;
  doca_rdma_connection_failure_cb_t on_failure = nullptr;
  doca_rdma_connection_disconnection_cb_t on_disconnection = nullptr;

  offload::doca::RdmaEndpoint endpoint;
  // After the endpoint, whose contexts their tasks name.
  std::tuple<offload::doca::TaskKind<doca_rdma_task_receive>,
             offload::doca::TaskKind<doca_rdma_task_send>,
             offload::doca::TaskKind<doca_rdma_task_send_imm>,
             offload::doca::TaskKind<doca_rdma_task_write>,
             offload::doca::TaskKind<doca_rdma_task_write_imm>,
             offload::doca::TaskKind<doca_rdma_task_read>,
             offload::doca::TaskKind<doca_rdma_task_remote_net_sync_event_get>,
             offload::doca::TaskKind<doca_rdma_task_remote_net_sync_event_notify_set>>
      kinds;
};

namespace offload::doca {

template <class Self, class LibraryTask>
doca_rdma& RdmaTaskOf<Self, LibraryTask>::rdma() const noexcept {
  return static_cast<doca_rdma&>(*ctx);
}

template <class Self, class LibraryTask>
core::Status RdmaTaskOf<Self, LibraryTask>::prepare() noexcept {
  if (connection != nullptr && !connection->is_usable()) return core::ErrorCode::not_connected;
  let_go();
  const core::Status taken = static_cast<Self*>(this)->take();
  if (!taken.ok()) let_go();
  return taken;
}

template <class Self, class LibraryTask>
void RdmaTaskOf<Self, LibraryTask>::call_back() noexcept {
  auto& kind = std::get<TaskKind<Self>>(rdma().kinds);
  const auto call = status == DOCA_SUCCESS ? kind.completed : kind.failed;
  call(static_cast<Self*>(this), user_data, ctx->user_data);
}

template <class Self, class LibraryTask>
void RdmaTaskOf<Self, LibraryTask>::release() noexcept {
  if (connection != nullptr) --connection->tasks;
  std::get<TaskKind<Self>>(rdma().kinds).tasks.release(*static_cast<Self*>(this));
}

template <class Self, class LibraryTask>
void RdmaTaskOf<Self, LibraryTask>::ended(progress::Task& task, void* rdma) noexcept {
  auto& self = *static_cast<Self*>(task.user_data);
  core::Status result = task.status();
  const bool was_disconnected = !result.ok() && self.was_disconnected();
  if (result.ok()) {
    self.deliver();
  } else if (was_disconnected && self.connection == nullptr) {
    result = core::ErrorCode::shutdown;
  } else if (result.error() == core::ErrorCode::io_failed) {
    core::log_error("rdma: a task failed: {}", self.own().explain());
  }
  self.let_go();  // first, as the callback may return the buffers
  static_cast<doca_rdma*>(rdma)->task_ended(self, to_doca(result), !was_disconnected);
}

/// The body of a doca_rdma_task_..._set_conf.
template <class Self>
doca_error_t configure_tasks(const char* call, doca_rdma* rdma,
                             typename TaskKind<Self>::Callback completed,
                             typename TaskKind<Self>::Callback failed,
                             std::uint32_t count) noexcept {
  if (rdma == nullptr || completed == nullptr || failed == nullptr || count == 0 ||
      count > kMostTasksOfContext) {
    return DOCA_ERROR_INVALID_VALUE;
  }
  if (const doca_error_t result = check_unused(*rdma); result != DOCA_SUCCESS) return result;
  return guarded(call, [&] {
    auto& kind = std::get<TaskKind<Self>>(rdma->kinds);
    kind.tasks.configure(count, {&Self::ended, rdma});
    kind.completed = completed;
    kind.failed = failed;
  });
}

/// Takes a task for a connection and sets its buffers, which may be null. The errors are those of a
/// doca_rdma_task_..._allocate_init.
template <class Self>
doca_error_t allocate_task(doca_rdma* rdma, doca_rdma_connection* connection,
                           const doca_buf* source, doca_buf* destination, doca_data user_data,
                           Self** task) noexcept {
  if (any_null(rdma, connection, task)) return DOCA_ERROR_INVALID_VALUE;
  auto& kind = std::get<TaskKind<Self>>(rdma->kinds);
  if (rdma->state != DOCA_CTX_STATE_RUNNING || !kind.tasks.is_configured()) {
    return DOCA_ERROR_BAD_STATE;
  }
  if (rdma->gpu) return DOCA_ERROR_NOT_SUPPORTED;
  if (connection->rdma != rdma) return DOCA_ERROR_INVALID_VALUE;
  if (!connection->connection) return DOCA_ERROR_BAD_STATE;
  Self* const allocated = kind.tasks.allocate_for(*connection->connection, *rdma, user_data);
  if (allocated == nullptr) return DOCA_ERROR_NO_MEMORY;
  allocated->connection = connection;
  allocated->source = source;
  allocated->destination = destination;
  ++connection->tasks;
  *task = allocated;
  return DOCA_SUCCESS;
}

}  // namespace offload::doca
