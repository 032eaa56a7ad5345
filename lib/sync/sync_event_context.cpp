#include "sync/sync_event_context.hpp"

#include <utility>

namespace offload::sync {

SyncEventContext::SyncEventContext(SyncEvent& event, std::string name)
    : Context(std::move(name)), event_(&event) {}

core::Status SyncEventContext::on_submit(progress::Task& task) noexcept {
  const auto operation = static_cast<SyncEventTask&>(task).operation;
  if (operation > SyncEventTask::Operation::wait_greater) return core::ErrorCode::invalid_value;
  return {};
}

bool SyncEventContext::on_poll(std::size_t most) {
  std::size_t completed = 0;
  auto* task = first_in_flight();
  while (task != nullptr && completed < most) {
    if (!run(static_cast<SyncEventTask&>(*task))) {
      task = next_in_flight(*task);
      continue;
    }
    ++completed;
    complete(*task, {});
    task = first_in_flight();  // the callback may have changed what comes next
  }
  return completed != 0;
}

/// Returns whether the task has come to its end.
bool SyncEventContext::run(SyncEventTask& task) noexcept {
  using Operation = SyncEventTask::Operation;
  switch (task.operation) {
    case Operation::get: task.result = event_->get(); return true;
    case Operation::set: event_->set(task.argument); return true;
    case Operation::add: task.result = event_->add(task.argument); return true;
    case Operation::wait_greater: task.result = event_->get(); return task.result > task.argument;
  }
  return false;
}

progress::Expecting SyncEventContext::expecting() const {
  return event_->publisher() == Publisher::gpu ? progress::Expecting::from_device
                                               : progress::Expecting::from_thread;
}

}  // namespace offload::sync
