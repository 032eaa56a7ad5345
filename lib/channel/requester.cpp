#include "channel/requester.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "kernels/slot_batch.hpp"
#include "protocol/frame.hpp"

namespace offload::channel {
namespace {

using core::ErrorCode;
using kernels::FrameKind;
using kernels::kFrameHeader;
using kernels::ResponseStatus;

static_assert(kFrameHeader == protocol::kFrameHeaderSize);
static_assert(static_cast<std::uint32_t>(FrameKind::response) ==
              static_cast<std::uint32_t>(protocol::MessageId::client_response));
static_assert(static_cast<std::uint32_t>(FrameKind::error) ==
              static_cast<std::uint32_t>(protocol::MessageId::error));

/// Returns whether the header is valid for a frame of this kind at the begin of `room` bytes.
bool is_frame(const protocol::FrameHeader& header, FrameKind kind, std::size_t room) noexcept {
  return header.msg_id == static_cast<std::uint32_t>(kind) &&
         header.length <= room - kFrameHeader && header.wire_size == kFrameHeader + header.length;
}

}  // namespace

Requester::Requester(const ChannelEndpoint& endpoint, const Receiver& receiver)
    : slots_(endpoint, *this),
      receiver_(receiver),
      capacity_(slots_.depth() * kMessagesPerSlot),
      batch_(slots_.max_response()),
      sends_(std::make_unique<RequestTask[]>(capacity_)),
      receives_(std::make_unique<PostRecvTask[]>(capacity_)),
      messages_of_(std::make_unique<std::uint32_t[]>(slots_.depth())),
      moving_(std::make_unique<std::uint32_t[]>(slots_.depth())) {}

// ---- Requests

/// Posts a message that joins no others: the first of a batch or a long one; or rejects it.
core::Status Requester::post_first(std::span<const std::byte> message, void* user_data,
                                   core::RunTime now) noexcept {
  if (slots_.engine() == nullptr) return ErrorCode::bad_state;
  if (message.size() > max_length()) return ErrorCode::invalid_value;
  // The gathered messages need one slot, and this message needs another one.
  const std::uint64_t slots = batch_.empty() ? 1 : 2;
  if (posted_ - released_ == capacity_ || slots_.room() < slots) return ErrorCode::again;
  post_batch();
  batch_limit_ = limit_of_batch();
  note(message.size(), user_data, now);
  if (message.size() > BatchBuffer::kLongest) {
    post_content({message, 0});
  } else {
    batch_.add(message);
  }
  return {};
}

/// Posts the gathered messages to their slot.
void Requester::post_batch() noexcept {
  if (batch_.empty()) return;
  post_content(batch_.content());
  batch_.clear();
}

void Requester::post_content(Content content) noexcept {
  messages_of(slots_.posted()) = std::max(content.count, 1U);
  slots_.post(content);
}

void Requester::flush() noexcept {
  post_batch();
  slots_.flush();
  if (released_ == received_) first_receive_ = received_;
}

// ---- Responses

/// The frames of a batch are checked one by one: from the first invalid one on, the rest of the
/// batch is malformed.
void Requester::on_content(const ContentResponse& response) {
  const std::uint64_t slot = response.sequence;
  const std::uint32_t count = messages_of(slot);
  if (response.count == 0 && count == 1) {
    if (response.bytes.size() > longest_response(send(received_).length_)) {
      return complete(1, {}, ResponseStatus::bad_length, /*framed=*/false, slot + 1);
    }
    return complete(1, response.bytes, response.status, /*framed=*/false, slot + 1);
  }
  std::span<std::byte> rest;
  if (response.status == ResponseStatus::ok && response.count == count) rest = response.bytes;
  // The bytes that are checked below must not change afterwards.
  if (rest.size() > kernels::kMaxPacketPayload) rest = slots_.copy(rest);
  std::uint32_t left = count;
  const auto slots_end = [&] { return left == 0 ? slot + 1 : slot; };
  while (left != 0 && rest.size() >= kFrameHeader) {
    if (const Run run = find_run(rest, left); run.count > 1) {
      left -= run.count;
      complete(run.count, rest.subspan(kFrameHeader, run.bytes - kFrameHeader), ResponseStatus::ok,
               /*framed=*/true, slots_end());
      rest = rest.subspan(run.bytes);
      continue;
    }
    const auto header = protocol::FrameHeader::load(rest.data());
    const bool answered = is_frame(header, FrameKind::response, rest.size());
    const bool refused = is_frame(header, FrameKind::error, rest.size()) && header.length == 0;
    if (!answered && !refused) break;
    --left;
    if (answered && header.length <= longest_response(send(received_).length_)) {
      complete(1, rest.subspan(kFrameHeader, header.length), ResponseStatus::ok,
               /*framed=*/true, slots_end());
    } else {
      complete(1, {}, ResponseStatus::bad_length, /*framed=*/false, slots_end());
    }
    rest = rest.subspan(header.wire_size);
  }
  while (left != 0) {
    --left;
    complete(1, {}, ResponseStatus::bad_length, /*framed=*/false, slots_end());
  }
}

/// Returns the number of the next responses, the `frames` of a batch, that can be delivered
/// together.
Requester::Run Requester::find_run(std::span<const std::byte> frames, std::uint32_t most) noexcept {
  Run run{0, 0};
  // Usually there is no run because the next request has another user_data.
  if (receiver_.longest_response == nullptr || most < 2 ||
      send(received_).user_data != send(received_ + 1).user_data) {
    return run;
  }
  const void* const user_data = send(received_).user_data;
  for (; run.count != most && frames.size() - run.bytes >= kFrameHeader; ++run.count) {
    const RequestTask& request = send(received_ + run.count);
    const auto header = protocol::FrameHeader::load(frames.data() + run.bytes);
    if (request.user_data != user_data || header.length > longest_response(request.length_) ||
        !is_frame(header, FrameKind::response, frames.size() - run.bytes)) {
      break;
    }
    run.bytes += header.wire_size;
  }
  return run;
}

/// Completes the receives of the `count` oldest requests.
inline void Requester::complete(std::uint32_t count, std::span<std::byte> payload,
                                ResponseStatus status, bool framed, std::uint64_t slots_end) {
  PostRecvTask& task = receives_[(received_ - first_receive_) & (capacity_ - 1)];
  received_ += count;
  task.user_data = send(received_ - 1).user_data;
  task.sequence_ = received_ - 1;
  task.payload_ = payload;
  task.count_ = count;
  task.status_ = status;
  task.slots_end_ = slots_end;
  task.framed_ = framed;
  receiver_.deliver(receiver_.handler, task);
}

// ---- To another worker

void Requester::move_to(const ChannelEndpoint& to, Wakeup wakeup) {
  if (released_ != received_) {
    core::throw_bad_state("requester", "responses are not released", "move");
  }
  post_batch();
  const std::uint64_t oldest = slots_.received();
  const std::uint64_t count = slots_.posted() - oldest;
  for (std::uint64_t i = 0; i != count; ++i) moving_[i] = messages_of(oldest + i);
  slots_.move_to(to, wakeup, [this, oldest, at = received_](std::uint64_t sequence) mutable {
    const std::uint32_t messages = moving_[sequence - oldest];
    return is_wanted(std::exchange(at, at + messages), messages);
  });

  // The tasks of reposted requests move together; by slot, because the new slots may differ.
  std::uint64_t from = received_;
  std::uint64_t slot = to.first;
  posted_ = received_;
  for (std::uint64_t i = 0; i != count; from += moving_[i++]) {
    if (!is_wanted(from, moving_[i])) continue;
    messages_of(slot++) = moving_[i];
    for (std::uint64_t message = from; message != from + moving_[i]; ++message) {
      send(posted_++) = send(message);
    }
  }
}

/// Returns whether one of `count` messages from `first` on was not given up.
bool Requester::is_wanted(std::uint64_t first, std::uint32_t count) noexcept {
  for (std::uint64_t i = first; i != first + count; ++i) {
    if (send(i).user_data != nullptr) return true;
  }
  return false;
}

}  // namespace offload::channel
