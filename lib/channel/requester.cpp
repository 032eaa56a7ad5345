#include "channel/requester.hpp"

#include <cstring>
#include <string>
#include <utility>

#include "channel/packets.hpp"
#include "channel/stream_copy.hpp"
#include "core/error.hpp"
#include "kernels/group.hpp"
#include "kernels/message.hpp"

namespace offload::channel {
namespace {

using core::ErrorCode;
using core::Status;
using kernels::kMaxPacketPayload;
using kernels::Packet;
using kernels::Slot;

/// How long the requester sleeps at most before it looks for the response of a worker that cannot
/// ring.
constexpr core::Duration kPollingInterval = std::chrono::microseconds(50);

/// Not part of its caller, which is quicker without the call in here.
[[gnu::noinline]] void write_plain(const Slot& slot, std::uint32_t flag,
                                   std::span<const std::byte> message, bool for_device) noexcept {
  if (reinterpret_cast<const std::uint8_t*>(message.data()) != slot.plain()) {
    if (for_device) {
      copy_for_device(slot.plain(), message.data(), message.size());
    } else {
      std::memcpy(slot.plain(), message.data(), message.size());
    }
  }
  kernels::release_plain_payload();
  kernels::store_packet(slot.packets, {{static_cast<std::uint32_t>(message.size()), 0, 0}, flag});
}

}  // namespace

Requester::Requester(const Endpoint& endpoint, ReceivePool::Receiver on_response)
    : Context("requester of channel " + std::to_string(endpoint.index)),
      view_(endpoint.view),
      ringer_(endpoint.ringer),
      waiter_(endpoint.waiter),
      posted_(endpoint.first),
      received_(endpoint.first),
      released_(endpoint.first),
      freed_(endpoint.first),
      announced_(endpoint.first),
      // A send ends with its response, of which the receive tells.
      sends_(*this, capacity(), {[](progress::Task&, void*) {}, nullptr}),
      receives_(*this, capacity(), on_response),
      pending_(capacity()),
      moving_(capacity()),
      payloads_(std::make_unique<std::byte[]>(capacity() * kPacketRoom)) {}

Requester::~Requester() {
  if (state() == State::running) stop();
  if (progress::Engine* const engine = this->engine()) engine->unwatch(waiter_.fd(), *this);
}

void Requester::open(progress::Engine& engine) {
  connect(engine);
  engine.watch(waiter_.fd(), EPOLLIN | EPOLLET, *this);
  start();
  while (PostRecvTask* const task = receives_.allocate()) {
    if (const Status posted = submit_unflushed(*task); !posted.ok()) {
      throw core::Error(posted.error(), "cannot post a receive");
    }
  }
}

Status Requester::post(std::span<const std::byte> message, void* user_data,
                       core::TimePoint now) noexcept {
  if (state() != State::running) return ErrorCode::bad_state;
  if (message.size() > max_length()) return ErrorCode::invalid_value;
  if (full()) return ErrorCode::again;
  const Slot slot = view_.request(posted_);
  const std::uint32_t flag = view_.layout.flag_of(posted_);
  const auto length = static_cast<std::uint32_t>(message.size());
  kernels::rewrite_rest(kernels::SingleLane{}, slot, flag, length);
  if (message.size() <= kMaxPacketPayload) {
    write_packets(slot.packets, flag, message.data(), length);
  } else {
    write_plain(slot, flag, message, /*for_device=*/wakeup_ == Wakeup::polling);
  }
  fetch_ahead<1>(view_.request(posted_ + kFetchAhead));
  SendTask& task = *sends_.allocate();  // there is one for each slot
  task.user_data = user_data;
  task.posted_at_ = now;
  task.length_ = static_cast<std::uint32_t>(message.size());
  task.moves_ = 0;
  pending_[view_.layout.slot_index(posted_)] = &task;
  ++posted_;
  accept(task);
  return {};
}

void Requester::move_to(const Endpoint& to, Wakeup wakeup) {
  if (state() != State::running || freed_ != received_) {
    core::throw_bad_state("requester", "responses are not released", "move");
  }
  const kernels::ChannelLayout& layout = to.view.layout;
  if (layout.depth != capacity() || layout.max_length != max_length()) {
    throw core::Error(ErrorCode::invalid_value, "a channel of another shape");
  }
  engine()->watch(to.waiter.fd(), EPOLLIN | EPOLLET, *this);
  engine()->unwatch(waiter_.fd(), *this);
  disarm();

  const kernels::ChannelView from = std::exchange(view_, to.view);
  const std::uint64_t first = std::exchange(received_, to.first);
  const std::uint64_t end = std::exchange(posted_, to.first);
  released_ = freed_ = announced_ = to.first;
  ringer_ = to.ringer;
  waiter_ = to.waiter;
  wakeup_ = wakeup;
  // By slot: the new slots may be others than the old ones.
  for (std::uint64_t i = first; i != end; ++i) {
    moving_[i - first] = pending_[from.layout.slot_index(i)];
  }
  for (std::uint64_t i = first; i != end; ++i) repost(from, i, *moving_[i - first]);
  on_flush();
}

/// Posts request `sequence` of the memory `from` again. The worker of that memory could not write
/// where it lies.
void Requester::repost(const kernels::ChannelView& from, std::uint64_t sequence,
                       SendTask& task) noexcept {
  if (task.user_data == nullptr) {  // given up
    retire(task);
    (void)sends_.release(task);
    return;
  }
  const Slot old = from.request(sequence);
  const Slot slot = view_.request(posted_);
  const std::uint32_t flag = view_.layout.flag_of(posted_);
  const std::uint32_t length = task.length_;
  if (length <= kMaxPacketPayload) {
    std::byte* const payload = payloads_.get();  // of a response, of which there is none
    (void)read_packets(old.packets, from.layout.flag_of(sequence), payload, length);
    write_packets(slot.packets, flag, payload, length);
  } else {
    write_plain(slot, flag, {reinterpret_cast<const std::byte*>(old.plain()), length},
                /*for_device=*/wakeup_ == Wakeup::polling);
  }
  ++task.moves_;
  pending_[view_.layout.slot_index(posted_++)] = &task;
}

/// Only receives are submitted.
Status Requester::on_submit(progress::Task& submitted) noexcept {
  auto& task = static_cast<PostRecvTask&>(submitted);
  if (!task.holds_slot_) return {};  // from open()
  if (task.sequence_ != released_) return ErrorCode::invalid_value;
  task.holds_slot_ = false;
  ++released_;
  return {};
}

void Requester::on_flush() noexcept {
  freed_ = released_;
  // Relaxed: for the worker's watchdog, which compares it with its last value.
  __atomic_store_n(&view_.request_header().consumed, freed_, __ATOMIC_RELAXED);
  if (std::exchange(announced_, posted_) != posted_) ringer_.ring();
}

bool Requester::on_poll(std::size_t most) {
  if (wakeup_ == Wakeup::none) return false;
  std::size_t count = 0;
  for (; count < most && awaited() != 0; ++count) {
    // Receives are posted again in order, so each stays with its slot.
    PostRecvTask& task = receives_.tasks()[view_.layout.slot_index(received_)];
    if (!take_response(task)) break;
    complete(task, {});
  }
  return count != 0;
}

/// Fills `task` with the next response, which ends its request. False if that response is not
/// there, whole.
bool Requester::take_response(PostRecvTask& task) noexcept {
  const Slot slot = view_.response(received_);
  const std::uint32_t flag = view_.layout.flag_of(received_);
  const Packet header = kernels::load_packet(slot.packets);
  if (header.flag != flag) return false;

  const std::uint32_t length = header.data[0];
  const std::uint32_t index = view_.layout.slot_index(received_);
  task.response_status_ = static_cast<kernels::Status>(header.data[1]);
  if (length > max_length()) {
    task.response_status_ = kernels::Status::bad_length;
    task.payload_ = {};
  } else if (length > kMaxPacketPayload) {
    kernels::acquire_plain_payload(slot.packets);
    task.payload_ = {reinterpret_cast<std::byte*>(slot.plain()), length};
  } else {
    std::byte* const to = payloads_.get() + index * kPacketRoom;
    if (!read_packets(slot.packets, flag, to, length)) return false;
    task.payload_ = {to, length};
  }
  fetch_ahead<0>(view_.response(received_ + kFetchAhead));
  SendTask& request = *pending_[index];
  task.user_data = request.user_data;
  task.sequence_ = received_;
  task.request_length_ = request.length_;
  task.holds_slot_ = true;
  retire(request);
  (void)sends_.release(request);
  ++received_;
  return true;
}

progress::Expecting Requester::expecting() const {
  if (awaited() == 0) return progress::Expecting::nothing;
  switch (wakeup_) {
    case Wakeup::doorbell: return progress::Expecting::from_thread;
    case Wakeup::polling: return progress::Expecting::from_device;
    case Wakeup::engine:  // the connection's own event comes first
    case Wakeup::none: break;
  }
  return progress::Expecting::nothing;
}

core::Duration Requester::arm() {
  if (wakeup_ == Wakeup::polling && awaited() != 0) return kPollingInterval;
  if (wakeup_ != Wakeup::doorbell || awaited() == 0) return core::Duration::max();
  waiter_.arm();
  armed_ = true;
  return core::Duration::max();
}

void Requester::disarm() {
  if (std::exchange(armed_, false)) waiter_.disarm();
}

}  // namespace offload::channel
