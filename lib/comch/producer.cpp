#include "comch/producer.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "comch/packed.hpp"
#include "comch/stream_copy.hpp"

namespace offload::comch {
namespace {

/// Not part of its caller, which is quicker without the call in here.
[[gnu::noinline]] void write_plain(const kernels::Part& part, std::uint32_t turn,
                                   std::span<const std::byte> message, bool for_device) noexcept {
  if (reinterpret_cast<const std::uint8_t*>(message.data()) != part.plain) {
    if (for_device) {
      copy_for_device(part.plain, message.data(), message.size());
    } else {
      std::memcpy(part.plain, message.data(), message.size());
    }
  }
  kernels::release_plain_payload();
  kernels::store_vector(part.vectors, {{static_cast<std::uint32_t>(message.size()), 0, 0}, turn});
}

}  // namespace

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

  const kernels::Part part = channel_.request(sequence);
  const std::uint32_t turn = channel_.layout.turn_of(sequence);
  if (task.message.size() <= kernels::kMaxPacked) {
    write_packed(part.vectors, turn, task.message.data(),
                 static_cast<std::uint32_t>(task.message.size()));
  } else {
    write_plain(part, turn, task.message, for_device_);
  }
  fetch_ahead<1>(channel_.request(sequence + kFetchAhead));
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
