#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "core/log.hpp"
#include "doca/pe.hpp"
#include "progress/task_pool.hpp"

namespace offload::doca {

/// The most tasks of one kind of a context: far more than a card has.
inline constexpr std::uint32_t kMostTasksOfContext = 65536;

/// Returns whether the program may set the arguments of a task; logs an error of `call` if not.
inline bool may_be_set(const doca_task* task, const char* call) noexcept {
  if (task == nullptr) return false;
  if (task->task != nullptr && !task->in_flight()) return true;
  core::log_error("{}: the task is {}", call, task->task == nullptr ? "free" : "in flight");
  return false;
}

/// The tasks of one kind of a context: a pool of the library's, and one of the C interface beside
/// each.
template <class DocaTask, class LibraryTask>
class TaskSet {
 public:
  using Pool = progress::TaskPool<LibraryTask>;

  /// Makes `count` tasks, whose ends `receiver` gets. The context is idle. Throws Error.
  void configure(typename LibraryTask::ContextType& context, std::uint32_t count,
                 typename Pool::Receiver receiver) {
    pool_.reset();
    tasks_ = std::make_unique<DocaTask[]>(count);
    pool_.emplace(context, count, receiver);
  }
  /// Does the same for several contexts, one of which each allocation names.
  void configure(std::uint32_t count, typename Pool::Receiver receiver) {
    pool_.reset();
    tasks_ = std::make_unique<DocaTask[]>(count);
    pool_.emplace(count, receiver);
  }
  /// Drops the tasks, before the context is destroyed.
  void clear() noexcept { pool_.reset(); }
  [[nodiscard]] std::uint32_t size() const noexcept {
    return pool_ ? static_cast<std::uint32_t>(pool_->size()) : 0;
  }
  [[nodiscard]] bool is_configured() const noexcept { return pool_.has_value(); }
  /// Returns whether the program holds none.
  [[nodiscard]] bool has_all() const noexcept {
    return !pool_ || pool_->available() == pool_->size();
  }

  /// Takes a task; null if all are taken.
  DocaTask* allocate(doca_ctx& ctx, doca_data user_data) noexcept {
    return hand_out(pool_->allocate(), ctx, user_data);
  }
  /// Takes a task for one of several contexts.
  DocaTask* allocate_for(typename LibraryTask::ContextType& context, doca_ctx& ctx,
                         doca_data user_data) noexcept {
    return hand_out(pool_->allocate_for(context), ctx, user_data);
  }
  void release(DocaTask& task) noexcept {
    static_cast<void>(pool_->release(static_cast<LibraryTask&>(*task.task)));
  }

 private:
  DocaTask* hand_out(LibraryTask* task, doca_ctx& ctx, doca_data user_data) noexcept {
    if (task == nullptr) return nullptr;
    DocaTask& allocated = tasks_[static_cast<std::size_t>(task - pool_->tasks().data())];
    task->user_data = &allocated;
    allocated.ctx = &ctx;
    allocated.task = task;
    allocated.user_data = user_data;
    allocated.status = DOCA_SUCCESS;
    return &allocated;
  }

  std::unique_ptr<DocaTask[]> tasks_;  ///< in the order of the pool's; destroyed after it
  std::optional<Pool> pool_;
};

}  // namespace offload::doca
