#include "comch/producer.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "comch/packed.hpp"

namespace offload::comch {

Producer::Producer(const ServerEnd& server_end)
    : Context("producer of channel " + std::to_string(server_end.index)),
      channel_(server_end.channel),
      cursors_(server_end.cursors),
      ringer_(server_end.ringer),
      tasks_(channel_.layout.depth) {}

core::Status Producer::on_submit(progress::Task& submitted) noexcept {
  auto& task = static_cast<SendTask&>(submitted);
  if (task.message.size() > max_length()) return core::ErrorCode::invalid_value;
  const std::uint64_t sequence = cursors_->posted;
  if (sequence - cursors_->reposted == capacity()) return core::ErrorCode::again;

  const auto length = static_cast<std::uint32_t>(task.message.size());
  const kernels::Part part = channel_.request(sequence);
  const std::uint32_t turn = channel_.layout.turn_of(sequence);
  if (length <= kernels::kMaxPacked) {
    write_packed(part.vectors, turn, task.message.data(), length);
  } else {
    std::memcpy(part.plain, task.message.data(), length);
    kernels::release_plain_payload();
    kernels::store_vector(part.vectors, {{length, 0, 0}, turn});
  }
  task.sequence_ = sequence;
  tasks_[channel_.layout.slot_of(sequence)] = &task;
  ++cursors_->posted;
  return {};
}

progress::Context::Step Producer::on_stop() noexcept {
  std::fill(tasks_.begin(), tasks_.end(), nullptr);  // they are their owner's again
  return Step::done;
}

void Producer::complete_until(std::uint64_t sequence) {
  while (auto* const task = static_cast<SendTask*>(first_in_flight())) {
    if (task->sequence_ >= sequence) return;
    tasks_[channel_.layout.slot_of(task->sequence_)] = nullptr;
    complete(*task, {});
  }
}

}  // namespace offload::comch
