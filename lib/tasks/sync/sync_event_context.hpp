#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/intrusive_list.hpp"
#include "progress/context.hpp"
#include "progress/task.hpp"
#include "tasks/sync/sync_event.hpp"

namespace offload::sync {

class SyncEventContext;

/// A task that is one operation on the context's event.
class SyncEventTask final : public progress::Task, public core::ListNode<SyncEventTask> {
 public:
  using ContextType = SyncEventContext;

  enum class Operation : std::uint8_t {
    get,
    set,             ///< to `argument`
    add,             ///< `argument`
    wait_greater,    ///< until the event is greater than `argument`
    wait_not_equal,  ///< until its bits of `mask` are others than those of `argument`
    wait_equal,      ///< until its bits of `mask` are those of `argument`
  };
  Operation operation = Operation::get;
  std::uint64_t argument = 0;
  std::uint64_t mask = ~std::uint64_t{0};  ///< of wait_not_equal and wait_equal
  /// Once it is done: the value that get read, the value before add, the value that ended the wait.
  std::uint64_t result = 0;
  /// Get and add store their result here too, before they complete. Null: nowhere else.
  std::uint64_t* result_copy = nullptr;

 private:
  friend class WaitHeap;

  [[nodiscard]] bool ends_before(const SyncEventTask& other) const noexcept {
    return threshold_ != other.threshold_ ? threshold_ < other.threshold_ : order_ < other.order_;
  }

  // Only while it waits: its place in the heap.
  std::uint64_t threshold_ = 0;
  std::uint64_t order_ = 0;
  SyncEventTask* lesser_ = nullptr;
  SyncEventTask* greater_ = nullptr;
};

/// A priority queue of waiting tasks: lowest threshold first, equal ones in the order of
/// submission. It is an intrusive skew heap: amortised logarithmic time, no allocation.
class WaitHeap {
 public:
  void push(SyncEventTask& task) noexcept;
  /// Removes and returns the first task whose threshold is below `value`; null if there is none.
  SyncEventTask* pop_below(std::uint64_t value) noexcept;
  [[nodiscard]] bool empty() const noexcept { return root_ == nullptr; }
  void clear() noexcept { root_ = nullptr; }

 private:
  static SyncEventTask* merge(SyncEventTask* one, SyncEventTask* other) noexcept;

  SyncEventTask* root_ = nullptr;
  std::uint64_t pushed_ = 0;
};

/// A context whose tasks operate on one event. Tasks that wait for a greater value complete when
/// the event exceeds their threshold, lowest first, and cost a turn nothing before; those that wait
/// for another value, or for a certain one, are looked at one by one. Other tasks complete in the
/// next turns, in the order of submission. A turn reads the event once for all waiting tasks. While
/// tasks wait, an engine that sleeps polls every kLookInterval, as an event has no descriptor.
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
  [[nodiscard]] std::size_t end_compared(std::size_t most);

  SyncEvent* event_;
  core::IntrusiveList<SyncEventTask> prompt_;  ///< tasks that need not wait
  WaitHeap waiting_;
  core::IntrusiveList<SyncEventTask> compared_;  ///< wait_not_equal and wait_equal, in no order
  std::size_t compared_count_ = 0;
};

}  // namespace offload::sync
