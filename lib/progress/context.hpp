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

/// Something that works on tasks: a copy engine, a queue of a device, a graph. A subclass says how.
///
/// Its life: make it, connect() it to an engine, make its task pools, start(), submit tasks,
/// stop(). It may be started again. What is submitted is completed from turns of the engine, by
/// callbacks of the tasks' pools. The engine polls it only while tasks are in flight (or while it
/// is starting or stopping), so an idle context costs nothing; or only when the subclass asks for
/// it.
///
/// One thread, that of its engine, which must outlive it. It must not be destroyed from inside a
/// callback.
class Context : Pollable {
 public:
  enum class State : std::uint8_t {
    idle,
    starting,  ///< start() was called, and something has to happen yet
    running,
    stopping,  ///< stop() was called, and tasks are being completed
  };
  /// When a running context is polled.
  enum class Turns : std::uint8_t {
    while_in_flight,  ///< while it has tasks in flight
    on_request,       ///< once after each request_turn(): others tell it of its completions
  };
  /// Called after each change. It may call the context, and must not throw.
  using StateCallback = void (*)(Context& context, State from, State to, void* user_data);

  /// Completions of one poll; then the others on the engine have their turn.
  static constexpr std::size_t kCompletionsAtOnce = 128;

  /// `name` is for errors and the log.
  explicit Context(std::string name, Turns turns = Turns::while_in_flight);
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  /// Of a context that is not idle: logs that, and completes what is in flight as stop() does.
  virtual ~Context();

  /// For good. Throws Error (bad_state) if it is connected already.
  void connect(Engine& engine);
  /// Null for none. Throws Error (bad_state) if the context is not idle.
  void set_state_callback(StateCallback callback, void* user_data);

  /// Returns running, or starting if that takes time: then turns of the engine end it. Throws
  /// Error: bad_state if it is not idle or not connected, or what made it fail; then it is idle
  /// again.
  void start();
  /// Completes every submitted task with the error `shutdown`, then the context is idle; where the
  /// subclass has to wait for what is in progress, turns of the engine do that and it returns
  /// stopping. Tasks that are not submitted stay with their owner. Of a context that is stopping
  /// already it does nothing. May be called from any callback. Throws Error (bad_state) if it is
  /// idle.
  void stop();

  /// Hands `task` over; its pool's callback will tell the end of it. An error means that it was not
  /// taken: bad_state if the context does not run or the task is in flight or released,
  /// invalid_value if it is another context's, or what the kind of task says.
  [[nodiscard]] core::Status submit(Task& task) noexcept;
  /// The same, but the work may stay put until the next flush(): many tasks, one doorbell.
  [[nodiscard]] core::Status submit_unflushed(Task& task) noexcept;
  /// Starts what was submitted without. bad_state if the context does not run.
  core::Status flush() noexcept;

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] State state() const noexcept { return state_; }
  /// Null until it is connected.
  [[nodiscard]] Engine* engine() const noexcept { return engine_; }
  [[nodiscard]] std::size_t in_flight() const noexcept { return in_flight_count_; }

 protected:
  enum class Step : std::uint8_t { done, in_progress };

  // What a subclass says. Completions come from on_poll, or from an event of a descriptor that it
  // watches; never from inside on_submit.

  /// May throw: then nothing of it may be left. in_progress: started() or stopped() will follow.
  virtual Step on_start() { return Step::done; }
  /// Nobody may touch the tasks any more when it returns done. in_progress: stopped() will follow.
  virtual Step on_stop() noexcept { return Step::done; }
  /// There is no time for stopped() to follow: the context or a pool of it ends. Returns when
  /// nobody touches the tasks any more, within a bound.
  virtual void on_abandon() noexcept {}
  /// Checks and takes a task; it is in flight if that is ok.
  virtual core::Status on_submit(Task& task) noexcept = 0;
  virtual void on_flush() noexcept {}
  /// Does a bounded piece of work, and completes `most` tasks or less. Returns whether there was
  /// any. The context may have stopped when complete() returns.
  virtual bool on_poll(std::size_t most) = 0;

  // As in Pollable, while it is active. As they stand here: it has to be polled.
  [[nodiscard]] Expecting expecting() const override { return Expecting::from_device; }
  core::Duration arm() override { return {}; }
  void disarm() override {}

  // What a subclass calls.

  /// Work has come up that is for the next turn: the engine must not sleep before.
  void request_turn() noexcept { engine_->activate(*this); }
  /// The start is over. Nothing happens if a stop came between.
  void started();
  /// The stop is over, or the start has failed: completes what is in flight, then it is idle.
  void stopped();
  /// Tells the task's owner, who may submit, release and stop from inside.
  void complete(Task& task, core::Status status) noexcept {
    assert(task.state_ == Task::State::submitted && task.context_ == this);
    core::IntrusiveList<Task>::remove(task);
    --in_flight_count_;
    task.finish(status);
  }
  /// Puts a task in flight that the subclass has taken in a call of its own, as on_submit() does.
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
  /// What is in flight, in the order of submission. Null: there is no other.
  [[nodiscard]] Task* first_in_flight() noexcept { return in_flight_.front(); }
  [[nodiscard]] Task* next_in_flight(Task& task) noexcept { return in_flight_.next(task); }
  /// Throws the Error (bad_state) if it is not idle.
  void expect_idle(std::string_view action) const;
  /// For the destructor of a subclass that has an on_stop: stops now, whatever is in progress, and
  /// logs that (`what` of) this context ends too early. Nothing happens if it is idle.
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

// Here, so that a caller that knows the subclass calls its on_submit directly.

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
