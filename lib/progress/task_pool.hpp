#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "core/error.hpp"
#include "core/status.hpp"
#include "progress/context.hpp"
#include "progress/task.hpp"

namespace offload::progress {

/// A fixed number of tasks of type T for one context, made in advance, with the callbacks for their
/// completion.
///
/// The pool is made while its context is idle and destroyed before it. If tasks are in flight when
/// it is destroyed, it logs an error and stops the context. One thread, that of the context's
/// engine.
template <class T>
class TaskPool {
 public:
  /// Called on the engine's thread, in a turn or in Context::stop(). It may submit or release the
  /// task, allocate, and stop the context; it must not throw, nor destroy the pool or the context.
  using Callback = void (*)(T& task, void* user_data);
  struct Callbacks {
    Callback completed;         ///< the task succeeded
    Callback failed;            ///< task.status() says why
    void* user_data = nullptr;  ///< passed to both
  };

  /// One function for both, called without the pool in between.
  using Receiver = Task::Receiver;

  /// Throws Error: invalid_value for a size of 0 or a null callback, bad_state if `context` is
  /// not idle.
  TaskPool(typename T::ContextType& context, std::size_t size, Callbacks callbacks)
      : TaskPool(context, size, Receiver{&TaskPool::deliver, this}) {
    if (callbacks.completed == nullptr || callbacks.failed == nullptr) {
      throw core::Error(core::ErrorCode::invalid_value, "a task pool needs both callbacks");
    }
    callbacks_ = callbacks;
  }
  /// The same; `receiver` looks at task.status() itself.
  TaskPool(typename T::ContextType& context, std::size_t size, Receiver receiver)
      : TaskPool(size, receiver, &context) {}
  /// A pool for several contexts, each of which outlives the tasks that it has in flight.
  TaskPool(std::size_t size, Receiver receiver) : TaskPool(size, receiver, nullptr) {}
  ~TaskPool() {
    for (const Task& task : tasks()) {
      if (task.state_ == Task::State::submitted) task.context_->end("a task pool of ");
    }
  }
  TaskPool& operator=(TaskPool&&) = delete;

  /// A task; null if all are allocated.
  [[nodiscard]] T* allocate() noexcept {
    if (available_ == 0) return nullptr;
    Task& task = *free_[--available_];
    task.state_ = Task::State::idle;
    task.status_ = {};
    task.user_data = nullptr;
    return static_cast<T*>(&task);
  }

  /// A task for `context`, if the pool is for several; null if all are allocated.
  [[nodiscard]] T* allocate_for(typename T::ContextType& context) noexcept {
    T* const allocated = allocate();
    if (allocated != nullptr) static_cast<Task*>(allocated)->context_ = &context;
    return allocated;
  }

  /// Takes a task back. invalid_value if it is not of this pool, bad_state if it is submitted or
  /// already released.
  core::Status release(T& released) noexcept {
    Task& task = released;
    if (task.pool_ != &receiver_) return core::ErrorCode::invalid_value;
    if (!task.may_be_submitted()) return core::ErrorCode::bad_state;
    if constexpr (requires { released.let_go(); }) released.let_go();
    task.state_ = Task::State::released;
    free_[available_++] = &released;
    return {};
  }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t available() const noexcept { return available_; }
  /// All tasks, allocated or not.
  [[nodiscard]] std::span<T> tasks() noexcept { return {tasks_.get(), size_}; }

 private:
  TaskPool(std::size_t size, Receiver receiver, Context* context)
      : size_(size), receiver_(receiver) {
    if (context != nullptr) context->expect_idle("get a task pool");
    if (size == 0) {
      throw core::Error(core::ErrorCode::invalid_value, "a task pool needs at least one task");
    }
    tasks_ = std::make_unique<T[]>(size);
    free_ = std::make_unique<T*[]>(size);
    for (T& added : tasks()) {
      Task& task = added;
      task.context_ = context;
      task.pool_ = task.receiver_ = &receiver_;
      free_[available_++] = &added;
    }
  }
  static void deliver(Task& task, void* pool) {
    const Callbacks& callbacks = static_cast<TaskPool*>(pool)->callbacks_;
    const Callback call = task.status().ok() ? callbacks.completed : callbacks.failed;
    call(static_cast<T&>(task), callbacks.user_data);
  }

  std::size_t size_;
  Callbacks callbacks_{};
  Receiver receiver_;
  std::unique_ptr<T[]> tasks_;
  std::unique_ptr<T*[]> free_;  ///< a stack of available_ free tasks
  std::size_t available_ = 0;
};

}  // namespace offload::progress
