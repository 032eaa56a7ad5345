#pragma once

#include <cstddef>
#include <span>

#include "progress/context.hpp"
#include "progress/task.hpp"

namespace offload::copy {

class CopyContext;

/// Copies `source` to the beginning of `destination`. Both must stay until the task is done; a task
/// that ends with an error has copied any part, or nothing.
class CopyTask final : public progress::Task {
 public:
  using ContextType = CopyContext;

  std::span<const std::byte> source;
  std::span<std::byte> destination;  ///< as long as `source`, or longer

 private:
  friend CopyContext;
  std::size_t note_ = 0;
};

/// Whoever copies: a thread, a copy engine. Tasks end in the order of their submission.
///
/// Submission says invalid_value for a destination that is shorter than the source, or overlaps it.
class CopyContext : public progress::Context {
 protected:
  using Context::Context;

  /// Takes a task whose arguments are right.
  virtual core::Status take(CopyTask& task) noexcept = 0;
  [[nodiscard]] CopyTask* first() noexcept { return static_cast<CopyTask*>(first_in_flight()); }
  /// What the subclass remembers of a task in flight.
  static std::size_t& note_of(CopyTask& task) noexcept { return task.note_; }

 private:
  core::Status on_submit(progress::Task& task) noexcept final;
};

}  // namespace offload::copy
