#pragma once

#include <cstdint>
#include <utility>

#include "core/intrusive_list.hpp"
#include "core/status.hpp"

namespace offload::progress {

class Context;
class GraphInstance;
template <class T>
class TaskPool;

/// One piece of work for a context. The tasks of a context derive from it, add their arguments, and
/// name the class of the context as `ContextType`. They are made by a TaskPool alone. Arguments
/// that hold something, as references to buffers do, are given up in a member `void let_go()
/// noexcept`, which the pool calls when the task is released.
///
/// Used on the thread of the context's engine.
class Task : public core::ListNode<Task> {
 public:
  enum class State : std::uint8_t {
    released,   ///< in its pool
    idle,       ///< allocated: its arguments may be set
    submitted,  ///< with its context: neither it nor what it names may be touched
    done,       ///< as status() says; may be submitted again, or released
  };

  [[nodiscard]] State state() const noexcept { return state_; }
  /// How it ended, once it is done.
  [[nodiscard]] core::Status status() const noexcept { return status_; }
  [[nodiscard]] Context& context() const noexcept { return *context_; }

  /// The user's own; null when the task is allocated.
  void* user_data = nullptr;

 protected:
  Task() noexcept = default;
  ~Task() = default;

 private:
  friend Context;
  friend GraphInstance;
  template <class T>
  friend class TaskPool;

  /// Who is told that a task is done. It outlives the task's being submitted.
  struct Receiver {
    void (*call)(Task& task, void* object);
    void* object;
  };

  [[nodiscard]] bool may_be_submitted() const noexcept {
    return state_ == State::idle || state_ == State::done;
  }

  /// Tells the receiver. The task may be submitted again or released meanwhile: nothing here is
  /// touched after.
  void finish(core::Status status) noexcept {
    state_ = State::done;
    status_ = status;
    const Receiver& receiver = *std::exchange(receiver_, pool_);
    receiver.call(*this, receiver.object);
  }

  State state_ = State::released;
  core::Status status_;
  Context* context_ = nullptr;
  const Receiver* pool_ = nullptr;
  const Receiver* receiver_ = nullptr;  ///< the pool, or for one run a graph
};

}  // namespace offload::progress
