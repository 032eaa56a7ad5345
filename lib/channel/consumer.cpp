#include "channel/consumer.hpp"

#include <string>
#include <utility>

#include "channel/packets.hpp"

namespace offload::channel {
namespace {

/// How long the server sleeps at most before it looks for the answer of a worker that cannot ring.
constexpr core::Duration kSilentPeerSleep = std::chrono::microseconds(50);

}  // namespace

Consumer::Consumer(const ServerEnd& server_end, Producer& producer)
    : Context("consumer of channel " + std::to_string(server_end.index)),
      channel_(server_end.channel),
      cursors_(server_end.cursors),
      producer_(&producer),
      waiter_(server_end.waiter),
      packed_(std::make_unique<std::byte[]>(channel_.layout.depth * kPacketRoom)) {}

core::Status Consumer::on_submit(progress::Task& submitted) noexcept {
  auto& task = static_cast<PostRecvTask&>(submitted);
  if (task.holds_slot_) {
    if (task.sequence_ != cursors_->reposted) return core::ErrorCode::invalid_value;
    task.holds_slot_ = false;
    ++cursors_->reposted;
  } else if (in_flight() == channel_.layout.depth) {
    return core::ErrorCode::full;
  }
  return {};
}

void Consumer::on_flush() noexcept {
  const std::uint64_t reposted = cursors_->reposted;
  // Relaxed, both: a worker that attaches, and repair_header, do as well with an older value.
  cursors_->published.store(reposted, std::memory_order_relaxed);
  __atomic_store_n(&channel_.header().consumed, reposted, __ATOMIC_RELAXED);
  producer_->complete_until(reposted);
}

bool Consumer::on_poll(std::size_t most) {
  std::size_t count = 0;
  for (; count < most && awaited() != 0; ++count) {
    auto* const task = static_cast<PostRecvTask*>(first_in_flight());
    if (task == nullptr || !take_response(*task)) break;
    complete(*task, {});
  }
  return count != 0;
}

/// Fills `task` with the next response; false if that is not there, whole.
bool Consumer::take_response(PostRecvTask& task) noexcept {
  const std::uint64_t sequence = cursors_->received;
  const kernels::Slot slot = channel_.response(sequence);
  const std::uint32_t flag = channel_.layout.flag_of(sequence);
  const kernels::Packet header = kernels::load_packet(slot.packets);
  if (header.flag != flag) return false;

  const std::uint32_t length = header.data[0];
  task.response_status_ = static_cast<kernels::Status>(header.data[1]);
  if (length > channel_.layout.max_length) {
    task.response_status_ = kernels::Status::bad_length;
    task.payload_ = {};
  } else if (length > kernels::kMaxPacketPayload) {
    kernels::acquire_plain_payload(slot.packets);
    task.payload_ = {reinterpret_cast<std::byte*>(slot.plain), length};
  } else {
    std::byte* const to = packed_.get() + channel_.layout.slot_index(sequence) * kPacketRoom;
    if (!read_packets(slot.packets, flag, to, length)) return false;
    task.payload_ = {to, length};
  }
  fetch_ahead<0>(channel_.response(sequence + kFetchAhead));
  task.request_ = producer_->task_of(sequence);
  task.sequence_ = sequence;
  task.holds_slot_ = true;
  ++cursors_->received;
  return true;
}

void Consumer::set_peer(Peer peer) noexcept {
  peer_ = peer;
  producer_->for_device_ = peer == Peer::silent;
}

progress::Expecting Consumer::expecting() const {
  if (awaited() == 0) return progress::Expecting::nothing;
  switch (peer_) {
    case Peer::rings: return progress::Expecting::from_thread;
    case Peer::silent: return progress::Expecting::from_device;
    case Peer::relayed:  // a WorkerProxy's event comes first
    case Peer::absent: break;
  }
  return progress::Expecting::nothing;
}

core::Duration Consumer::arm() {
  if (peer_ == Peer::silent && awaited() != 0) return kSilentPeerSleep;
  if (peer_ != Peer::rings || awaited() == 0) return core::Duration::max();
  waiter_.arm();
  armed_ = true;
  return core::Duration::max();
}

void Consumer::disarm() {
  if (std::exchange(armed_, false)) waiter_.disarm();
}

}  // namespace offload::channel
