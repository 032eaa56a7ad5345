#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/clock.hpp"
#include "core/intrusive_list.hpp"
#include "core/status.hpp"
#include "progress/engine.hpp"
#include "progress/task.hpp"

namespace offload::progress {

/// The base class of objects that execute tasks: a copy engine, a queue of a device, a graph.
///
/// Its life: make it, connect() it to an engine, make its task pools, start(), submit tasks,
/// stop(). It may be started again. Submitted tasks complete in turns of the engine, through the
/// callbacks of their pools. The engine polls a context only while tasks are in flight (or while it
/// is starting or stopping), so an idle context costs nothing; with Turns::on_request, only when
/// the subclass asks, and with Turns::always as long as it runs.
///
/// One thread, that of its engine, which must outlive it. It must not be destroyed inside a
/// callback.
class Context : Pollable {
 public:
  enum class State : std::uint8_t {
    idle,
    starting,  ///< start() was called and is not complete
    running,
    stopping,  ///< stop() was called; tasks are being completed
  };
  /// The times at which a running context is polled.
  enum class Turns : std::uint8_t {
    while_in_flight,  ///< while it has tasks in flight
    on_request,       ///< once after each request_turn(), for a subclass that gets notifications
    always,           ///< in each turn, from the request_turn() of its start on
  };
  /// Called after each change of state. It may call the context, and must not throw.
  using StateCallback = void (*)(Context& context, State from, State to, void* user_data);

  /// The most completions of one poll, so that other contexts of the engine are polled too.
  static constexpr std::size_t kCompletionsAtOnce = 128;

  /// `name`: for error messages and the log.
  explicit Context(std::string name, Turns turns = Turns::while_in_flight);
  Context& operator=(Context&&) = delete;
  /// If the context is not idle, logs an error and completes the tasks in flight as stop() does.
  virtual ~Context();

  /// Connects the context to its engine, once. Throws Error (bad_state) if it is already connected.
  void connect(Engine& engine);
  /// Null: no callback. Throws Error (bad_state) if the context is not idle.
  void set_state_callback(StateCallback callback, void* user_data);

  /// Starts the context. On return it is running, or starting if that takes time: then turns of the
  /// engine complete the start. Throws Error: bad_state if it is not idle or not connected, or the
  /// subclass's reason; then it is idle again.
  void start();
  /// Completes every submitted task with the error `shutdown`; then the context is idle. If the
  /// subclass has to wait for work in progress, the context is stopping on return and turns of the
  /// engine complete the stop. Does nothing if it is already stopping. May be called from any
  /// callback. Throws Error (bad_state) if it is idle.
  void stop();

  /// Stops the context, unless it is idle, and runs turns of the engine until it is, for `limit` at
  /// most. Not in a turn of the engine.
  void stop_within(core::Duration limit);

  /// Submits `task`; a callback of its pool reports its completion. An error means that the task
  /// was not accepted: bad_state if the context is not running or the task is in flight or
  /// released, invalid_value if it belongs to another context, or an error that the kind of task
  /// documents.
  [[nodiscard]] core::Status submit(Task& task) noexcept;
  /// The same, but the work may wait for the next flush(), so that many tasks cost one doorbell.
  [[nodiscard]] core::Status submit_unflushed(Task& task) noexcept;
  /// Starts the tasks that were submitted unflushed. bad_state if the context is not running.
  core::Status flush() noexcept;

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] State state() const noexcept { return state_; }
  /// Null until it is connected.
  [[nodiscard]] Engine* engine() const noexcept { return engine_; }
  [[nodiscard]] std::size_t in_flight() const noexcept { return in_flight_count_; }

 protected:
  enum class Step : std::uint8_t { done, in_progress };

  // Implemented by a subclass. It completes tasks in on_poll, or in an event of a descriptor that
  // it watches; never inside on_submit.

  /// Starts. If it throws, it must have undone everything. in_progress: the subclass calls
  /// started() or stopped() later.
  virtual Step on_start() { return Step::done; }
  /// Stops. done: no device or thread accesses the tasks any more. in_progress: the subclass calls
  /// stopped() later.
  virtual Step on_stop() noexcept { return Step::done; }
  /// Stops at once, as the context or one of its pools is being destroyed. Returns within a bounded
  /// time, when no device or thread accesses the tasks any more.
  virtual void on_abandon() noexcept {}
  /// Checks a task and accepts it; it is in flight if the result is ok.
  virtual core::Status on_submit(Task& task) noexcept = 0;
  virtual void on_flush() noexcept {}
  /// Does a bounded amount of work, and completes at most `most` tasks. Returns whether there was
  /// work. The context may have stopped when complete() returns.
  virtual bool on_poll(std::size_t most) = 0;

  // The same as in Pollable. The defaults are for a context that must be polled while it is active.
  [[nodiscard]] Expecting expecting() const override { return Expecting::from_device; }
  core::Duration arm() override { return {}; }
  void disarm() override {}

  // Called by a subclass.

  /// Requests a poll in the next turn; the engine does not sleep before it.
  void request_turn() noexcept { engine_->activate(*this); }
  /// Reports that the start is complete. Does nothing if the context was stopped meanwhile.
  void started() {
    if (state_ == State::starting) change_state(State::running);
  }
  /// Reports that the stop is complete, or that the start has failed: completes the tasks in
  /// flight, then the context is idle.
  void stopped();
  /// Completes a task: calls its pool's callback, which may submit, release, and stop the context.
  void complete(Task& task, core::Status status) noexcept {
    assert(task.state_ == Task::State::submitted && task.context_ == this);
    core::IntrusiveList<Task>::remove(task);
    --in_flight_count_;
    task.finish(status);
  }
  /// Puts a task in flight that the subclass has accepted in one of its own calls, as on_submit()
  /// does.
  void accept(Task& task) noexcept {
    assert(state_ == State::running && task.context_ == this && task.may_be_submitted());
    task.state_ = Task::State::submitted;
    in_flight_.push_back(task);
    ++in_flight_count_;
    if (turns_ == Turns::while_in_flight) request_turn();
  }
  /// Ends such a task well, without its pool's callback.
  void retire(Task& task) noexcept {
    assert(task.state_ == Task::State::submitted && task.context_ == this);
    core::IntrusiveList<Task>::remove(task);
    --in_flight_count_;
    task.state_ = Task::State::done;
    task.status_ = {};
  }
  /// The tasks in flight, in the order of submission. Null: there are no more.
  [[nodiscard]] Task* first_in_flight() noexcept { return in_flight_.front(); }
  [[nodiscard]] Task* next_in_flight(Task& task) noexcept { return in_flight_.next(task); }
  /// Throws Error (bad_state) if the context is not idle. `action` completes "...: cannot ".
  void expect_idle(std::string_view action) const;
  /// For the destructor of a subclass that has an on_stop: stops at once and logs an error that the
  /// context, or `what` of it, is destroyed too early. Does nothing if it is idle.
  void end(std::string_view what = "") noexcept;

 private:
  template <class T>
  friend class TaskPool;

  bool poll() final;
  void change_state(State to);
  void log_early_end(std::string_view what) const;

  std::string name_;
  Engine* engine_ = nullptr;
  State state_ = State::idle;
  Turns turns_;
  StateCallback state_callback_ = nullptr;
  void* state_user_data_ = nullptr;
  core::IntrusiveList<Task> in_flight_;
  std::size_t in_flight_count_ = 0;
};

// Inline, so that a caller that knows the (final) subclass calls its on_submit directly.

inline core::Status Context::submit(Task& task) noexcept {
  const core::Status status = submit_unflushed(task);
  if (status.ok()) on_flush();
  return status;
}

inline core::Status Context::submit_unflushed(Task& task) noexcept {
  if (task.context_ != this) return core::ErrorCode::invalid_value;
  if (state_ != State::running || !task.may_be_submitted()) return core::ErrorCode::bad_state;
  if (const core::Status status = on_submit(task); !status.ok()) return status;
  accept(task);
  return {};
}

inline core::Status Context::flush() noexcept {
  if (state_ != State::running) return core::ErrorCode::bad_state;
  on_flush();
  return {};
}

/// "idle", "starting", ...
std::string_view name_of(Context::State state) noexcept;

}  // namespace offload::progress
