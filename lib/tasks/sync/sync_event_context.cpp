#include "tasks/sync/sync_event_context.hpp"

#include <utility>

namespace offload::sync {

using Operation = SyncEventTask::Operation;

void WaitHeap::push(SyncEventTask& task) noexcept {
  task.threshold_ = task.argument;
  task.order_ = pushed_++;
  task.lesser_ = task.greater_ = nullptr;
  root_ = merge(root_, &task);
}

SyncEventTask* WaitHeap::pop_below(std::uint64_t value) noexcept {
  SyncEventTask* const first = root_;
  if (first == nullptr || first->threshold_ >= value) return nullptr;
  root_ = merge(first->lesser_, first->greater_);
  return first;
}

SyncEventTask* WaitHeap::merge(SyncEventTask* one, SyncEventTask* other) noexcept {
  SyncEventTask* root = nullptr;
  SyncEventTask** place = &root;
  while (one != nullptr && other != nullptr) {
    if (other->ends_before(*one)) std::swap(one, other);
    *place = one;
    std::swap(one->lesser_, one->greater_);  // the step of a skew heap that keeps paths short
    place = &one->lesser_;
    one = *place;
  }
  *place = one != nullptr ? one : other;
  return root;
}

SyncEventContext::SyncEventContext(SyncEvent& event, std::string name)
    : Context(std::move(name)), event_(&event) {}

core::Status SyncEventContext::on_submit(progress::Task& submitted) noexcept {
  auto& task = static_cast<SyncEventTask&>(submitted);
  if (task.operation > Operation::wait_equal) return core::ErrorCode::invalid_value;
  if (task.operation == Operation::wait_greater) {
    waiting_.push(task);
  } else if (task.operation >= Operation::wait_not_equal) {
    compared_.push_back(task);
    ++compared_count_;
  } else {
    prompt_.push_back(task);
  }
  return {};
}

progress::Context::Step SyncEventContext::on_stop() noexcept {
  waiting_.clear();
  while (prompt_.pop_front() != nullptr) continue;
  while (compared_.pop_front() != nullptr) continue;
  compared_count_ = 0;
  return Step::done;
}

bool SyncEventContext::on_poll(std::size_t most) {
  // Callbacks may submit again without end, so each kind has its part of the completions.
  std::size_t left = most;
  while (left > most / 2) {
    SyncEventTask* const task = prompt_.pop_front();
    if (task == nullptr) break;
    --left;
    run(*task);
    complete(*task, {});
  }
  if (!compared_.empty()) left -= end_compared(left - left / 2);
  const std::uint64_t value = waiting_.empty() ? 0 : event_->get();
  while (left != 0) {
    SyncEventTask* const task = waiting_.pop_below(value);
    if (task == nullptr) break;
    --left;
    task->result = value;
    complete(*task, {});
  }
  return left != most;
}

/// Looks at those that are there once, and ends `most` at most. Returns how many.
std::size_t SyncEventContext::end_compared(std::size_t most) {
  const std::uint64_t value = event_->get();
  std::size_t ended = 0;
  for (std::size_t looks = compared_count_; looks != 0 && ended != most; --looks) {
    SyncEventTask* const task = compared_.pop_front();
    if (task == nullptr) break;  // a callback has stopped the context
    const bool is_equal = ((value ^ task->argument) & task->mask) == 0;
    if (is_equal != (task->operation == Operation::wait_equal)) {
      compared_.push_back(*task);
      continue;
    }
    --compared_count_;
    ++ended;
    task->result = value;
    complete(*task, {});
  }
  return ended;
}

void SyncEventContext::run(SyncEventTask& task) noexcept {
  switch (task.operation) {
    case Operation::get: task.result = event_->get(); break;
    case Operation::set: event_->set(task.argument); return;
    case Operation::add: task.result = event_->add(task.argument); break;
    case Operation::wait_greater:
    case Operation::wait_not_equal:
    case Operation::wait_equal: return;  // wait elsewhere
  }
  if (task.result_copy != nullptr) *task.result_copy = task.result;
}

progress::Expecting SyncEventContext::expecting() const {
  return event_->publisher() == Publisher::gpu ? progress::Expecting::from_device
                                               : progress::Expecting::from_thread;
}

}  // namespace offload::sync
