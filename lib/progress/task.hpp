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

/// The base class of a unit of work for a context. A subclass adds its arguments as members, and
/// names the class of its context as `ContextType`. Only a TaskPool makes tasks. A subclass whose
/// arguments own something, such as references to buffers, drops it in a member `void let_go()
/// noexcept`, which the pool calls when the task is released.
///
/// Used on the thread of the context's engine.
class Task : public core::ListNode<Task> {
 public:
  enum class State : std::uint8_t {
    released,   ///< in its pool
    idle,       ///< allocated: its arguments may be set
    submitted,  ///< in flight: neither the task nor the buffers it names may be accessed
    done,       ///< completed with status(); may be submitted again, or released
  };

  [[nodiscard]] State state() const noexcept { return state_; }
  /// The result, once the task is done.
  [[nodiscard]] core::Status status() const noexcept { return status_; }
  [[nodiscard]] Context& context() const noexcept { return *context_; }

  /// For the user; null when the task is allocated.
  void* user_data = nullptr;

 protected:
  Task() noexcept = default;
  ~Task() = default;

 private:
  friend Context;
  friend GraphInstance;
  template <class T>
  friend class TaskPool;

  /// The function that a task's completion is reported to. It must live while the task is
  /// submitted.
  struct Receiver {
    void (*call)(Task& task, void* object);
    void* object;
  };

  [[nodiscard]] bool may_be_submitted() const noexcept {
    return state_ == State::idle || state_ == State::done;
  }

  /// Reports the completion. The receiver may submit or release the task, so nothing here accesses
  /// it afterwards.
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
  const Receiver* receiver_ = nullptr;  ///< the pool, or during one run a graph instance
};

}  // namespace offload::progress
