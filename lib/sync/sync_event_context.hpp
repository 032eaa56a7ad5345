#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "progress/context.hpp"
#include "progress/task.hpp"
#include "sync/sync_event.hpp"

namespace offload::sync {

class SyncEventContext;

/// One operation on the context's event.
class SyncEventTask final : public progress::Task {
 public:
  using ContextType = SyncEventContext;

  enum class Operation : std::uint8_t {
    get,
    set,           ///< to `argument`
    add,           ///< `argument`
    wait_greater,  ///< until the event is greater than `argument`
  };
  Operation operation = Operation::get;
  std::uint64_t argument = 0;
  /// Once it is done: what get read, what was there before add, what ended the wait.
  std::uint64_t result = 0;
};

/// Works on one event by tasks, beside whatever else is on its engine. A wait ends when the event
/// allows it, the others in the next turn. While tasks wait, an engine that sleeps looks every
/// kLookInterval: an event has no descriptor.
class SyncEventContext final : public progress::Context {
 public:
  static constexpr core::Duration kLookInterval = std::chrono::microseconds(50);

  /// `event` must outlive the context.
  explicit SyncEventContext(SyncEvent& event, std::string name = "sync event");

 private:
  core::Status on_submit(progress::Task& task) noexcept override;
  bool on_poll(std::size_t most) override;
  [[nodiscard]] progress::Expecting expecting() const override;
  core::Duration arm() override { return kLookInterval; }

  bool run(SyncEventTask& task) noexcept;

  SyncEvent* event_;
};

}  // namespace offload::sync
