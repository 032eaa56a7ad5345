#include "channel/producer.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "channel/packets.hpp"
#include "channel/stream_copy.hpp"

namespace offload::channel {
namespace {

/// Not slot of its caller, which is quicker without the call in here.
[[gnu::noinline]] void write_plain(const kernels::Slot& slot, std::uint32_t flag,
                                   std::span<const std::byte> message, bool for_device) noexcept {
  if (reinterpret_cast<const std::uint8_t*>(message.data()) != slot.plain) {
    if (for_device) {
      copy_for_device(slot.plain, message.data(), message.size());
    } else {
      std::memcpy(slot.plain, message.data(), message.size());
    }
  }
  kernels::release_plain_payload();
  kernels::store_packet(slot.packets, {{static_cast<std::uint32_t>(message.size()), 0, 0}, flag});
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

  const kernels::Slot slot = channel_.request(sequence);
  const std::uint32_t flag = channel_.layout.flag_of(sequence);
  if (task.message.size() <= kernels::kMaxPacketPayload) {
    write_packets(slot.packets, flag, task.message.data(),
                  static_cast<std::uint32_t>(task.message.size()));
  } else {
    write_plain(slot, flag, task.message, for_device_);
  }
  fetch_ahead<1>(channel_.request(sequence + kFetchAhead));
  task.sequence_ = sequence;
  tasks_[channel_.layout.slot_index(sequence)] = &task;
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
    tasks_[channel_.layout.slot_index(task->sequence_)] = nullptr;
    complete(*task, {});
  }
}

}  // namespace offload::channel
