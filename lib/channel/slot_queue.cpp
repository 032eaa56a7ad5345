#include "channel/slot_queue.hpp"

#include <cstring>
#include <utility>

#include "channel/packets.hpp"
#include "channel/stream_copy.hpp"
#include "core/error.hpp"
#include "kernels/group.hpp"
#include "kernels/message.hpp"
#include "kernels/slot_batch.hpp"

namespace offload::channel {
namespace {

using kernels::kMaxPacketPayload;
using kernels::Packet;
using kernels::Slot;

/// The longest sleep of the requester between polls for the response of a worker that cannot ring.
constexpr core::Duration kPollingInterval = std::chrono::microseconds(50);

/// The number of responses in one turn, so that other work of the engine also progresses.
constexpr int kTakenAtOnce = 128;

/// Room for the copy of a content. Not a power of two: slots would share cache sets.
constexpr std::size_t kCopyRoom = kernels::kMaxBatchContent + kernels::kSlack;

/// Not inlined: the caller is faster without the call in here.
[[gnu::noinline]] void write_plain(const Slot& slot, std::uint32_t flag, Content content,
                                   bool for_device) noexcept {
  const auto bytes = content.bytes;
  if (reinterpret_cast<const std::uint8_t*>(bytes.data()) != slot.plain()) {
    if (for_device) {
      copy_for_device(slot.plain(), bytes.data(), bytes.size());
    } else {
      std::memcpy(slot.plain(), bytes.data(), bytes.size());
    }
  }
  kernels::release_plain_payload();
  kernels::store_packet(slot.packets,
                        {{static_cast<std::uint32_t>(bytes.size()), 0, content.count}, flag});
}

}  // namespace

SlotQueue::SlotQueue(const ChannelEndpoint& endpoint, Receiver receiver, void* handler)
    : view_(endpoint.view),
      ringer_(endpoint.ringer),
      waiter_(endpoint.waiter),
      receiver_(receiver),
      handler_(handler),
      posted_(endpoint.first),
      received_(endpoint.first),
      released_(endpoint.first),
      freed_(endpoint.first),
      announced_(endpoint.first),
      // One more than the maximum number, because a copy that does not fit at the end starts at the
      // beginning.
      copies_(std::make_unique_for_overwrite<std::byte[]>((depth() + 1) * kCopyRoom)) {}

SlotQueue::~SlotQueue() {
  close();
}

void SlotQueue::open(progress::Engine& engine) {
  if (engine_ != nullptr) core::throw_bad_state("channel", "open", "open");
  engine.watch(waiter_.fd(), EPOLLIN | EPOLLET, *this);
  engine.activate(*this);
  engine_ = &engine;
}

void SlotQueue::close() noexcept {
  if (engine_ == nullptr) return;
  engine_->deactivate(*this);
  engine_->unwatch(waiter_.fd(), *this);
  engine_ = nullptr;
}

void SlotQueue::post(Content content) noexcept {
  write(view_.request(posted_), view_.layout.flag_of(posted_), content);
  ++posted_;
  fetch_ahead<1>(view_.request(posted_ - 1 + kFetchAhead),
                 static_cast<std::uint32_t>(content.bytes.size()));
}

void SlotQueue::write(const Slot& slot, std::uint32_t flag, Content content) noexcept {
  const auto length = static_cast<std::uint32_t>(content.bytes.size());
  kernels::rewrite_rest(kernels::SingleLane{}, slot, flag, length);
  if (length <= kMaxPacketPayload) {
    write_packets(slot.packets, flag, content.bytes.data(), length, 0, content.count);
  } else {
    write_plain(slot, flag, content, /*for_device=*/wakeup_ == Wakeup::polling);
  }
}

void SlotQueue::flush() noexcept {
  freed_ = released_;
  if (released_ == received_) copies_end_ = 0;
  // Relaxed: for the worker's watchdog, which compares it with its last value.
  __atomic_store_n(&view_.request_header().consumed, freed_, __ATOMIC_RELAXED);
  if (std::exchange(announced_, posted_) != posted_) ringer_.ring();
}

void SlotQueue::move_to(const ChannelEndpoint& to, Wakeup wakeup, const Keep& keep) {
  if (engine_ == nullptr || freed_ != received_) {
    core::throw_bad_state("channel", "responses are not released", "move");
  }
  const kernels::ChannelLayout& layout = to.view.layout;
  if (layout.depth != depth() || layout.max_length != max_length() ||
      layout.max_response != view_.layout.max_response) {
    throw core::Error(core::ErrorCode::invalid_value, "the new channel has another shape");
  }
  engine_->watch(to.waiter.fd(), EPOLLIN | EPOLLET, *this);
  engine_->unwatch(waiter_.fd(), *this);
  disarm();

  const kernels::ChannelView from = std::exchange(view_, to.view);
  const std::uint64_t first = std::exchange(received_, to.first);
  const std::uint64_t end = std::exchange(posted_, to.first);
  released_ = freed_ = announced_ = to.first;
  ringer_ = to.ringer;
  waiter_ = to.waiter;
  wakeup_ = wakeup;
  for (std::uint64_t i = first; i != end; ++i) {
    if (keep(i)) repost(from, i);
  }
  flush();
}

/// Reposts content `sequence` of the memory `from`, whose worker could not write there.
void SlotQueue::repost(const kernels::ChannelView& from, std::uint64_t sequence) noexcept {
  const Slot old = from.request(sequence);
  const Packet header = kernels::load_packet(old.packets);
  const std::uint32_t length = header.data[0];
  const std::byte* bytes = reinterpret_cast<const std::byte*>(old.plain());
  if (length <= kMaxPacketPayload) {
    std::byte* const to = copies_.get();  // the room of responses, of which there are none
    (void)read_packets(old.packets, from.layout.flag_of(sequence), to, length);
    bytes = to;
  }
  post({{bytes, length}, header.data[2]});
}

bool SlotQueue::poll() {
  if (wakeup_ == Wakeup::none) return false;
  int count = 0;
  ContentResponse response{};
  for (; count < kTakenAtOnce && awaited() != 0 && take(response); ++count) {
    receiver_(handler_, response);
    if (engine_ == nullptr || wakeup_ == Wakeup::none) return true;
  }
  return count != 0;
}

/// Returns room for the next copy: after the last one, or at the beginning, where the oldest ones
/// are free, because all copies together need less than the room.
std::byte* SlotQueue::next_copy() noexcept {
  if (copies_end_ + kCopyRoom > (depth() + 1) * kCopyRoom) copies_end_ = 0;
  return copies_.get() + copies_end_;
}

std::span<std::byte> SlotQueue::copy(std::span<const std::byte> batch) noexcept {
  std::byte* const to = next_copy();
  std::memcpy(to, batch.data(), batch.size());
  copies_end_ += batch.size();
  return {to, batch.size()};
}

/// Takes the next response. Returns false if it has not arrived completely.
bool SlotQueue::take(ContentResponse& response) noexcept {
  const Slot slot = view_.response(received_);
  const std::uint32_t flag = view_.layout.flag_of(received_);
  const Packet header = kernels::load_packet(slot.packets);
  if (header.flag != flag) return false;

  // The worker is not trusted: its words are read once and checked.
  const std::uint32_t length = header.data[0];
  const std::uint32_t count = header.data[2];
  response = {received_, static_cast<kernels::ResponseStatus>(header.data[1]), {}, count};
  if (length > (count == 0 ? max_length() : kernels::kMaxBatchContent)) {
    response.status = kernels::ResponseStatus::bad_length;
  } else if (length <= kMaxPacketPayload) {
    std::byte* const to = next_copy();
    if (!read_packets(slot.packets, flag, to, length)) return false;
    response.bytes = {to, length};
    copies_end_ += length + kernels::kSlack;
  } else {
    kernels::acquire_plain_payload(slot.packets);
    response.bytes = {reinterpret_cast<std::byte*>(slot.plain()), length};
  }
  if (response.status != kernels::ResponseStatus::ok) response.bytes = {};
  fetch_ahead<0>(view_.response(received_ + kFetchAhead), length);
  ++received_;
  return true;
}

progress::Expecting SlotQueue::expecting() const {
  if (awaited() == 0) return progress::Expecting::nothing;
  switch (wakeup_) {
    case Wakeup::doorbell: return progress::Expecting::from_thread;
    case Wakeup::polling: return progress::Expecting::from_device;
    case Wakeup::engine:  // the event of the connection comes first
    case Wakeup::none: break;
  }
  return progress::Expecting::nothing;
}

core::Duration SlotQueue::arm() {
  if (wakeup_ == Wakeup::polling && awaited() != 0) return kPollingInterval;
  if (wakeup_ != Wakeup::doorbell || awaited() == 0) return core::Duration::max();
  waiter_.arm();
  armed_ = true;
  return core::Duration::max();
}

}  // namespace offload::channel
