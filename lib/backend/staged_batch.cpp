#include "backend/staged_batch.hpp"

#include "kernels/services/echo.hpp"

namespace offload::backend {
namespace {

using kernels::Arrival;
using kernels::Request;
using kernels::SingleLane;

/// Replaces the service, because the processor makes the responses; their sizes are checked when
/// they arrive.
struct Unanswered {
  static std::uint32_t response_length(std::uint32_t) { return 0; }
};

/// Returns message `i` of the slot's batch in the staging.
Request message_of(const kernels::Staging& staging, std::uint32_t i) {
  return {staging.bytes + staging.request_at[i],
          static_cast<std::uint32_t>(staging.request_at[i + 1] - staging.request_at[i])};
}

}  // namespace

StagedBatch::Taken StagedBatch::take(const kernels::ChannelView& channel, std::uint64_t sequence,
                                     kernels::Staging& staging) {
  if (count() == kernels::kMostInBatch || bytes_ == capacity_) return Taken::full;
  const kernels::Received received = receive(SingleLane{}, channel, sequence, staging);
  const TakenSlot slot{sequence, count(), received.count};
  switch (received.arrival) {
    case Arrival::none: return Taken::nothing;
    case Arrival::malformed: break;
    case Arrival::packets:
    case Arrival::plain:
      if (received.count == 0) {
        const std::uint8_t* const payload =
            received.arrival == Arrival::plain ? channel.request(sequence).plain() : staging.bytes;
        return add(slot, {payload, received.length}) ? Taken::added : Taken::full;
      }
      if (kernels::lay_out_batch(SingleLane{}, channel, sequence, Unanswered{}, staging, received,
                                 received.length) != 0) {
        return add_all(slot, staging) ? Taken::added : Taken::full;
      }
  }
  kernels::refuse(SingleLane{}, channel.response(sequence), channel.layout.flag_of(sequence));
  return Taken::refused;
}

bool StagedBatch::add(const TakenSlot& slot, const Request& message) {
  if (kernels::room_in_batch(message.length()) > capacity_ - bytes_) return false;
  append(message);
  slots_[slot_count_++] = slot;
  return true;
}

/// Adds all messages of the slot's batch in the staging, or none.
bool StagedBatch::add_all(const TakenSlot& slot, const kernels::Staging& staging) {
  std::uint32_t room = 0;
  for (std::uint32_t i = 0; i < slot.count; ++i) {
    room += kernels::room_in_batch(message_of(staging, i).length());
  }
  if (slot.count > kernels::kMostInBatch - count() || room > capacity_ - bytes_) return false;
  for (std::uint32_t i = 0; i < slot.count; ++i) append(message_of(staging, i));
  slots_[slot_count_++] = slot;
  return true;
}

void StagedBatch::append(const Request& message) {
  kernels::Echo{}(SingleLane{}, message,
                  kernels::FlatResponse(requests_->payloads() + bytes_, message.length()));
  requests_->entries[count()] = {bytes_, message.length()};
  ++requests_->count;
  bytes_ += kernels::room_in_batch(message.length());
}

/// Returns the response to message `i`, if there is a valid one; trusts no length.
std::optional<Request> StagedBatch::response(std::uint32_t i, std::uint32_t max_length) const {
  const kernels::RequestBatch::Entry request = requests_->entries[i];
  const kernels::ResponseBatch::Entry response = responses_->entries[i];
  if (response.status != kernels::ResponseStatus::ok || response.length > max_length ||
      response.length > kernels::room_in_batch(request.length)) {
    return std::nullopt;
  }
  return Request(responses_->payloads() + request.place, response.length);
}

bool StagedBatch::answer(const kernels::ChannelView& channel, std::uint32_t i,
                         kernels::Staging& staging) const {
  const TakenSlot& taken = slots_[i];
  const std::uint32_t flag = channel.layout.flag_of(taken.sequence);
  const kernels::Slot slot = channel.response(taken.sequence);
  std::optional<Request> content;
  bool all_valid = true;
  if (taken.count == 0) {
    content = response(taken.first, channel.layout.max_length);
  } else {
    content = frames(taken, channel.layout.max_length, staging, all_valid);
  }
  if (!content) {
    kernels::refuse(SingleLane{}, slot, flag);
    return false;
  }
  kernels::answer(SingleLane{}, kernels::Echo{}, *content, slot, flag, taken.count);
  return all_valid;
}

/// Returns the frames of a slot's batch, in the staging; nothing if they do not fit in a slot. The
/// frame of a message without a valid response says so.
std::optional<Request> StagedBatch::frames(const TakenSlot& taken, std::uint32_t max_length,
                                           kernels::Staging& staging, bool& all_valid) const {
  using kernels::kFrameHeader;
  std::uint32_t bytes = 0;
  for (std::uint32_t i = taken.first; i < taken.first + taken.count; ++i) {
    const std::optional<Request> payload = response(i, max_length);
    const std::uint32_t length = payload ? payload->length() : 0;
    if (kFrameHeader + length > kernels::kMaxBatchContent - bytes) return std::nullopt;
    std::uint8_t* const frame = staging.frames + bytes;
    kernels::store_frame_header(
        frame, payload ? kernels::FrameKind::response : kernels::FrameKind::error, length);
    if (payload) {
      kernels::Echo{}(SingleLane{}, *payload,
                      kernels::UnalignedResponse(frame + kFrameHeader, length));
    }
    all_valid = all_valid && payload.has_value();
    bytes += kFrameHeader + length;
  }
  return Request(staging.frames, bytes);
}

}  // namespace offload::backend
