#include "comch/channel.hpp"

#include <sys/eventfd.h>

#include <cassert>
#include <cstring>
#include <utility>

#include "comch/packed.hpp"
#include "core/error.hpp"

namespace offload::comch {
namespace {

using core::Error;
using core::ErrorCode;

/// How long the server sleeps at most before it looks for the answer of a worker that cannot ring.
constexpr core::Duration kSilentPeerSleep = std::chrono::microseconds(50);

core::Fd make_eventfd() {
  return core::Fd(core::check_errno(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd"));
}

kernels::Channel view(const memory::SharedMemory& memory, const kernels::ChannelLayout& layout) {
  return {reinterpret_cast<std::uint8_t*>(memory.data()), layout};
}

kernels::ChannelLayout checked_layout(const protocol::ChannelDescriptor& descriptor) {
  if (!kernels::is_valid_shape(descriptor.depth, descriptor.max_message_length)) {
    throw Error(ErrorCode::bad_message,
                "channel " + std::to_string(descriptor.channel) +
                    " has an impossible shape: depth " + std::to_string(descriptor.depth) +
                    ", messages of " + std::to_string(descriptor.max_message_length) + " bytes");
  }
  const auto layout = kernels::make_layout(descriptor.depth, descriptor.max_message_length);
  if (layout.bytes != descriptor.region_bytes) {
    throw Error(ErrorCode::bad_message,
                "channel " + std::to_string(descriptor.channel) +
                    " is laid out differently: " + std::to_string(descriptor.region_bytes) +
                    " bytes, here " + std::to_string(layout.bytes));
  }
  return layout;
}

}  // namespace

Producer::Producer(const kernels::Channel& channel, Cursors& cursors, progress::Ringer ringer)
    : channel_(channel), cursors_(&cursors), ringer_(ringer), tasks_(channel.layout.depth) {}

void Producer::submit(SendTask& task, std::span<const std::byte> payload) noexcept {
  assert(task.sequence == cursors_->posted);
  assert(payload.size() <= channel_.layout.max_length);
  const auto length = static_cast<std::uint32_t>(payload.size());
  const kernels::Part part = channel_.request(task.sequence);
  const std::uint32_t turn = channel_.layout.turn_of(task.sequence);
  if (length <= kernels::kMaxPacked) {
    write_packed(part.vectors, turn, payload.data(), length);
  } else {
    std::memcpy(part.plain, payload.data(), length);
    kernels::release_plain_payload();
    kernels::store_vector(part.vectors, {{length, 0, 0}, turn});
  }
  ++cursors_->posted;
}

void Producer::flush() noexcept {
  ringer_.ring();
}

Consumer::Consumer(const kernels::Channel& channel, Cursors& cursors, Producer& producer,
                   progress::Waiter waiter)
    : channel_(channel),
      cursors_(&cursors),
      producer_(&producer),
      waiter_(waiter),
      tasks_(channel.layout.depth) {}

PostRecvTask* Consumer::receive(std::byte* packed_to) noexcept {
  const std::uint64_t sequence = cursors_->received;
  if (sequence == cursors_->posted) return nullptr;
  const kernels::Part part = channel_.response(sequence);
  const std::uint32_t turn = channel_.layout.turn_of(sequence);
  const kernels::Vector header = kernels::load_vector(part.vectors);
  if (header.turn != turn) return nullptr;

  const std::uint32_t length = header.data[0];
  PostRecvTask& task = tasks_[channel_.layout.slot_of(sequence)];
  task.request = &producer_->task(sequence);
  task.status = static_cast<kernels::Status>(header.data[1]);
  if (length > channel_.layout.max_length) {
    task.status = kernels::Status::bad_length;
    task.payload = {};
  } else if (length > kernels::kMaxPacked) {
    kernels::acquire_plain_payload();
    task.payload = {reinterpret_cast<std::byte*>(part.plain), length};
  } else {
    if (!read_packed(part.vectors, turn, packed_to, length)) return nullptr;
    task.payload = {packed_to, length};
  }
  ++cursors_->received;
  return &task;
}

void Consumer::repost([[maybe_unused]] PostRecvTask& task) noexcept {
  assert(&task == &tasks_[channel_.layout.slot_of(cursors_->reposted)]);
  ++cursors_->reposted;
}

void Consumer::flush() noexcept {
  consumed_.store(cursors_->reposted, std::memory_order_relaxed);  // read by repair_header
  // Relaxed: a worker that attaches does as well with an older value.
  __atomic_store_n(&channel_.header().consumed, cursors_->reposted, __ATOMIC_RELAXED);
}

core::Duration Consumer::arm() noexcept {
  if (in_flight() == 0 || peer_ == Peer::absent) return core::Duration::max();
  if (peer_ == Peer::silent) return kSilentPeerSleep;
  waiter_.arm();
  armed_ = true;
  return core::Duration::max();
}

void Consumer::disarm() noexcept {
  if (std::exchange(armed_, false)) waiter_.disarm();
}

Channel::Channel(std::uint32_t index, std::uint32_t depth, std::uint32_t max_message_length,
                 int numa_node)
    : layout_(kernels::make_layout(depth, max_message_length)),
      memory_(memory::SharedMemory::create("offload-channel-" + std::to_string(index),
                                           layout_.bytes, numa_node)),
      request_bell_(make_eventfd()),
      response_bell_(make_eventfd()),
      channel_(view(memory_, layout_)),
      producer_(channel_, cursors_, {channel_.header().requests, request_bell_.get()}),
      consumer_(channel_, cursors_, producer_,
                {channel_.header().responses, response_bell_.get()}) {
  descriptor_ = {index, depth, max_message_length, layout_.bytes};
}

void Channel::repair_header() noexcept {
  __atomic_store_n(&channel_.header().consumed, consumer_.consumed(), __ATOMIC_RELAXED);
}

ChannelImport::ChannelImport(const protocol::ChannelDescriptor& descriptor,
                             std::array<core::Fd, 3> fds)
    : index_(descriptor.channel),
      memory_(memory::SharedMemory::import(std::move(fds[0]), descriptor.region_bytes)),
      request_bell_(std::move(fds[1])),
      response_bell_(std::move(fds[2])),
      channel_(view(memory_, checked_layout(descriptor))) {}

}  // namespace offload::comch
