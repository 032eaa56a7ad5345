#include "telemetry/command_queue.hpp"

#include <algorithm>
#include <utility>

#include "core/escape.hpp"
#include "core/log.hpp"

namespace offload::telemetry {

CommandResult set_log_level(const std::string& levels) {
  if (!core::log_levels_are_right(levels)) {
    return {CommandResult::Status::refused,
            "'" + core::escaped(levels) + "' is not a level, such as debug or info,comch=debug"};
  }
  core::set_log_level(levels);
  return {CommandResult::Status::done, "the log level is " + levels};
}

namespace {

CommandResult ending() {
  return {CommandResult::Status::refused, "the program is shutting down"};
}

}  // namespace

void CommandQueue::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  for (const auto& each : waiting_) {
    each->result = ending();
    each->is_done = true;
  }
  waiting_.clear();
  done_.notify_all();
}

CommandResult CommandQueue::ask(AdminCommand command) {
  const auto mine = std::make_shared<Waiting>();
  mine->command = std::move(command);
  std::unique_lock lock(mutex_);
  if (closed_) return ending();
  waiting_.push_back(mine);
  notify_();
  if (done_.wait_for(lock, patience_, [&] { return mine->is_done; })) return mine->result;
  const auto place = std::find(waiting_.begin(), waiting_.end(), mine);
  if (place == waiting_.end()) return {CommandResult::Status::refused, "it is not done yet"};
  waiting_.erase(place);
  return {CommandResult::Status::refused, "the control thread does not answer"};
}

void CommandQueue::carry_out(const std::function<CommandResult(const AdminCommand&)>& run) {
  std::unique_lock lock(mutex_);
  while (!waiting_.empty()) {
    const auto next = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    CommandResult result = run(next->command);
    lock.lock();
    next->result = std::move(result);
    next->is_done = true;
    done_.notify_all();
  }
}

}  // namespace offload::telemetry
