#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/intrusive_list.hpp"
#include "progress/context.hpp"
#include "progress/task.hpp"
#include "sync/sync_event.hpp"

namespace offload::sync {

class SyncEventContext;

/// One operation on the context's event.
class SyncEventTask final : public progress::Task, public core::ListNode<SyncEventTask> {
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

 private:
  friend class WaitHeap;

  [[nodiscard]] bool ends_before(const SyncEventTask& other) const noexcept {
    return threshold_ != other.threshold_ ? threshold_ < other.threshold_ : order_ < other.order_;
  }

  // Of one that waits.
  std::uint64_t threshold_ = 0;
  std::uint64_t order_ = 0;
  SyncEventTask* lesser_ = nullptr;
  SyncEventTask* greater_ = nullptr;
};

/// Waiting tasks, the one with the lowest threshold first, equal ones in their order. A skew heap
/// through the tasks themselves: logarithmic over many calls, and nothing is allocated.
class WaitHeap {
 public:
  void push(SyncEventTask& task) noexcept;
  /// The first that waits for less than `value`, taken out; null if there is none.
  SyncEventTask* pop_below(std::uint64_t value) noexcept;
  [[nodiscard]] bool empty() const noexcept { return root_ == nullptr; }
  void clear() noexcept { root_ = nullptr; }

 private:
  static SyncEventTask* merge(SyncEventTask* one, SyncEventTask* other) noexcept;

  SyncEventTask* root_ = nullptr;
  std::uint64_t pushed_ = 0;
};

/// Works on one event by tasks, beside whatever else is on its engine. What waits ends when the
/// event allows it, in the order of thresholds; the others end in the next turns, in their order. A
/// turn looks at the event once, however many tasks wait. While they do, an engine that sleeps
/// looks every kLookInterval: an event has no descriptor.
class SyncEventContext final : public progress::Context {
 public:
  static constexpr core::Duration kLookInterval = std::chrono::microseconds(50);

  /// `event` must outlive the context.
  explicit SyncEventContext(SyncEvent& event, std::string name = "sync event");

 private:
  core::Status on_submit(progress::Task& task) noexcept override;
  Step on_stop() noexcept override;
  bool on_poll(std::size_t most) override;
  [[nodiscard]] progress::Expecting expecting() const override;
  core::Duration arm() override { return kLookInterval; }

  void run(SyncEventTask& task) noexcept;

  SyncEvent* event_;
  core::IntrusiveList<SyncEventTask> prompt_;  ///< those that need not wait
  WaitHeap waiting_;
};

}  // namespace offload::sync
