#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "progress/context.hpp"
#include "progress/task.hpp"
#include "tasks/memory/buffer.hpp"

namespace offload::copy {

class CopyContext;

/// A task that appends the data of `source`, a buffer or a list of them, to `destination`: it fills
/// the tailrooms of a buffer, or of a list in its order, and becomes data when the task succeeds. A
/// task that fails has written any part of it, or nothing, and appended nothing.
///
/// The task holds both buffers from when they are set until they are replaced or the task is
/// released.
class CopyTask final : public progress::Task {
 public:
  using ContextType = CopyContext;

  memory::BufferRef source;
  memory::BufferRef destination;  ///< whose tailrooms hold all of the source's data

  /// Drops both buffers; called by the pool.
  void let_go() noexcept {
    source.reset();
    destination.reset();
  }

 private:
  friend CopyContext;

  /// The plan of a context for a task that it accepted.
  struct Plan {
    std::size_t length = 0;   ///< of all the source's data
    std::uint64_t shape = 0;  ///< of the destination: where its tailrooms are
    std::size_t note = 0;     ///< for the subclass
  };
  Plan plan_;
};

/// The base of the contexts that copy: by a thread, by a copy engine. Tasks end in the order of
/// their submission. All calls from the engine's thread.
///
/// Submission returns invalid_value where a buffer is missing, or the destination's tailrooms are
/// shorter than the source's data or overlap it; not_permitted where a region of the destination is
/// read-only; not_supported for a source or destination of more than most_elements() buffers, and
/// for memory that the subclass cannot reach.
class CopyContext : public progress::Context {
 public:
  /// The most buffers of a source, and of a destination.
  [[nodiscard]] std::size_t most_elements() const noexcept { return most_elements_; }

 protected:
  using Plan = CopyTask::Plan;

  CopyContext(std::string name, std::size_t most_elements)
      : Context(std::move(name)), most_elements_(most_elements) {}

  /// Starts a task whose arguments are valid.
  virtual core::Status take(CopyTask& task) noexcept = 0;
  /// Completes a task; appends the data to its destination if `status` is ok.
  void finish(CopyTask& task, core::Status status) noexcept;

  [[nodiscard]] CopyTask* first() noexcept { return static_cast<CopyTask*>(first_in_flight()); }
  [[nodiscard]] CopyTask* next(CopyTask& task) noexcept {
    return static_cast<CopyTask*>(next_in_flight(task));
  }
  /// Returns whether the destination is still the same as when the task was submitted.
  static bool is_as_planned(const CopyTask& task) noexcept;
  static Plan& plan_of(CopyTask& task) noexcept { return task.plan_; }

 private:
  core::Status on_submit(progress::Task& task) noexcept final;

  std::size_t most_elements_;
};

}  // namespace offload::copy
