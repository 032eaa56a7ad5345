#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "core/clock.hpp"
#include "doca/include/doca_pe.h"
#include "progress/context.hpp"
#include "progress/engine.hpp"
#include "progress/task.hpp"

/// A task of the C interface beside the task of the library that it stands for.
struct doca_task {
  doca_task() = default;
  doca_task& operator=(doca_task&&) = delete;

  /// Gives the library's task what the program set: called before each submission. An error means
  /// that the arguments are invalid.
  virtual offload::core::Status prepare() noexcept = 0;
  /// Prepares and submits the library's task. Overridden where the class of its context is known,
  /// so that the compiler sees what it calls.
  virtual offload::core::Status submit(bool flush) noexcept;
  /// Drops what prepare() took.
  virtual void let_go() noexcept = 0;
  /// Calls the program's callback for the end.
  virtual void call_back() noexcept = 0;
  /// Returns it to its context.
  virtual void release() noexcept = 0;

  doca_ctx* ctx = nullptr;
  offload::progress::Task* task = nullptr;  ///< null: free
  doca_data user_data{};
  doca_error_t status = DOCA_SUCCESS;  ///< of the last end
  doca_task* next_ended = nullptr;     ///< in the context's list
  bool has_ended = false;              ///< its callback is still to be called
  bool in_graph = false;               ///< a graph instance with it is in flight

  /// Returns whether the library owns it.
  [[nodiscard]] bool in_flight() const noexcept {
    return has_ended || in_graph || task->state() == offload::progress::Task::State::submitted;
  }

 protected:
  ~doca_task() = default;
};

namespace offload::doca {

/// The body of doca_task::submit() for a task of a context of that class.
template <class ContextOfTask, class DocaTask>
core::Status submit_to(DocaTask& task, bool flush) noexcept {
  core::Status status = task.prepare();
  if (!status.ok()) return status;
  auto& context = static_cast<ContextOfTask&>(task.task->context());
  status = flush ? context.submit(*task.task) : context.submit_unflushed(*task.task);
  if (!status.ok()) task.let_go();
  return status;
}

}  // namespace offload::doca

/// A context of the C interface beside the context of the library that it stands for.
///
/// The library's context ends its tasks within stop(). The program's callbacks shall come from
/// doca_pe_progress(): tasks that end in a stop wait in a list for the end of the turn, and this
/// context is stopping until all of them were reported and all tasks were freed.
struct doca_ctx {
  doca_ctx() = default;
  doca_ctx& operator=(doca_ctx&&) = delete;
  virtual ~doca_ctx();

  virtual offload::progress::Context& context() noexcept = 0;
  /// Returns whether all that a start needs is configured.
  [[nodiscard]] virtual bool is_configured() const noexcept = 0;
  /// Returns whether it is started without a progress engine of the program: kernels alone use it.
  [[nodiscard]] virtual bool runs_alone() const noexcept { return false; }
  /// Gives the library's context the configuration and what it needs, before each start. Throws
  /// Error.
  virtual void configure() {}
  /// Returns whether the program holds no task of it.
  [[nodiscard]] virtual bool has_all_tasks() const noexcept = 0;
  /// Returns whether a task that fails stops it.
  [[nodiscard]] virtual bool stops_on_failure() const noexcept { return true; }
  /// Returns the number of tasks that the library owns, of contexts behind it too.
  [[nodiscard]] virtual std::size_t submitted() noexcept { return context().in_flight(); }
  /// Starts the tasks that were submitted unflushed.
  virtual void flush() noexcept { static_cast<void>(context().flush()); }
  /// Drops what is valid until the stop, before the program is told that it is idle.
  virtual void became_idle() noexcept {}

  /// Sets the GPU whose kernels use it. Returns false if none can. It is idle.
  virtual bool set_gpu(doca_gpu&) { return false; }
  /// Connects one that runs alone to its own engine. Throws Error.
  void connect_alone();
  /// Turns the engine of a context that runs alone until the context is idle, or destroyed. Returns
  /// whether it is; half a minute is the limit.
  static bool idles_alone(doca_ctx& ctx) noexcept;
  /// Starts the context. Returns whether it is running; it is starting otherwise, unless the
  /// program's callback has stopped or destroyed it. Throws Error.
  bool start();
  /// For a receiver: reports the end of a task with `status`, or keeps it for the end of the turn.
  /// `may_stop`: a failure stops the context, if failures do.
  template <class DocaTask>
  void task_ended(DocaTask& task, doca_error_t status, bool may_stop = true) noexcept {
    if (status != DOCA_SUCCESS || state == DOCA_CTX_STATE_STOPPING) {
      return task_ended_otherwise(task, status, may_stop);
    }
    task.status = status;
    task.call_back();
  }
  /// Stops a running context. Returns whether it is idle.
  bool stop() noexcept;
  void change_state(doca_ctx_states to) noexcept;
  /// Reports tasks that ended in a stop. Returns whether there were any.
  bool report_ended() noexcept;
  /// Returns whether a stopping context can become idle.
  [[nodiscard]] bool can_be_idle() noexcept;
  [[nodiscard]] std::size_t in_flight() const noexcept;

  doca_pe* pe = nullptr;
  doca_ctx_states state = DOCA_CTX_STATE_IDLE;
  doca_data user_data{};
  doca_ctx_state_changed_callback_t state_callback = nullptr;
  std::size_t graph_nodes = 0;  ///< of graphs, which run tasks of it

 private:
  /// The same for a failure and in a stop.
  void task_ended_otherwise(doca_task& task, doca_error_t status, bool may_stop) noexcept;
  static void follow_start(offload::progress::Context& context,
                           offload::progress::Context::State from,
                           offload::progress::Context::State to, void* ctx);

  std::shared_ptr<doca_pe> own_engine_;  ///< of one that runs alone
  doca_task* first_ended_ = nullptr;
  doca_task* last_ended_ = nullptr;
  std::size_t ended_ = 0;
};

/// A progress engine, and the contexts that are connected to it.
struct doca_pe {
  offload::progress::Engine engine;
  std::vector<doca_ctx*> contexts;
  std::vector<doca_ctx*> stopping;  ///< with room for all of them
  std::size_t graphs = 0;
  bool in_turn = false;
  bool is_armed = false;

  /// Connects a context that is connected to none. Throws Error.
  void connect(doca_ctx& ctx);
  /// Ends what turns of the engine left for after the turn. Returns whether there was anything.
  bool settle() noexcept;
};

namespace offload::doca {

/// Checks that a context may be destroyed, or its tasks be configured: it is idle, and no graph has
/// a node of it, whose instances may have its tasks.
inline doca_error_t check_unused(const doca_ctx& ctx) noexcept {
  if (ctx.state != DOCA_CTX_STATE_IDLE) return DOCA_ERROR_BAD_STATE;
  return ctx.graph_nodes == 0 ? DOCA_SUCCESS : DOCA_ERROR_IN_USE;
}

/// Submits a task that the program owns.
doca_error_t submit(doca_task* task, bool flush) noexcept;

}  // namespace offload::doca
