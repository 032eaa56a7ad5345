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

static_assert(kFrameHeader == protocol::kFrameHeaderSize);
static_assert(static_cast<std::uint32_t>(FrameKind::response) ==
              static_cast<std::uint32_t>(protocol::MessageId::client_response));
static_assert(static_cast<std::uint32_t>(FrameKind::error) ==
              static_cast<std::uint32_t>(protocol::MessageId::error));

}  // namespace

Requester::Requester(const Endpoint& endpoint, Receiver receiver, void* handler)
    : slots_(endpoint, *this),
      receiver_(receiver),
      handler_(handler),
      capacity_(slots_.depth() * kMessagesPerSlot),
      batch_(slots_.max_response()),
      sends_(std::make_unique<SendTask[]>(capacity_)),
      receives_(std::make_unique<PostRecvTask[]>(capacity_)),
      messages_of_(std::make_unique<std::uint32_t[]>(slots_.depth())),
      moving_(std::make_unique<std::uint32_t[]>(slots_.depth())) {}

// ---- Requests

/// A message that does not join others: the first of a batch, a long one, or none.
core::Status Requester::post_first(std::span<const std::byte> message, void* user_data,
                                   core::TimePoint now) noexcept {
  if (slots_.engine() == nullptr) return ErrorCode::bad_state;
  if (message.size() > max_length()) return ErrorCode::invalid_value;
  // What was gathered has its slot already, and this message needs another.
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

/// Gives what was gathered its slot.
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

/// A batch's frames are checked one by one: from the first that is not as it should be on, the rest
/// of the batch is malformed.
void Requester::on_content(const ContentResponse& response) {
  const std::uint64_t slot = response.sequence;
  const std::uint32_t count = messages_of(slot);
  if (response.count == 0 && count == 1) {
    return complete(response.bytes, response.status, /*framed=*/false, slot + 1);
  }
  std::span<std::byte> rest;
  if (response.status == kernels::Status::ok && response.count == count) rest = response.bytes;
  // What is checked below must not change after that.
  if (rest.size() > kernels::kMaxPacketPayload) rest = slots_.copy(rest);
  std::uint32_t left = count;
  const auto slots_end = [&] { return --left == 0 ? slot + 1 : slot; };
  while (left != 0 && rest.size() >= kFrameHeader) {
    const auto header = protocol::FrameHeader::load(rest.data());
    const bool answered = header.msg_id == static_cast<std::uint32_t>(FrameKind::response);
    const bool refused =
        header.msg_id == static_cast<std::uint32_t>(FrameKind::error) && header.length == 0;
    if (!(answered || refused) || header.length > max_length() ||
        header.length > rest.size() - kFrameHeader ||
        header.wire_size != kFrameHeader + header.length) {
      break;
    }
    if (answered) {
      complete(rest.subspan(kFrameHeader, header.length), kernels::Status::ok, /*framed=*/true,
               slots_end());
    } else {
      complete({}, kernels::Status::bad_length, /*framed=*/false, slots_end());
    }
    rest = rest.subspan(header.wire_size);
  }
  while (left != 0) {
    complete({}, kernels::Status::bad_length, /*framed=*/false, slots_end());
  }
}

/// Completes the receive of the oldest request.
inline void Requester::complete(std::span<std::byte> payload, kernels::Status status, bool framed,
                                std::uint64_t slots_end) {
  const SendTask& request = send(received_);
  PostRecvTask& task = receives_[(received_ - first_receive_) & (capacity_ - 1)];
  task.user_data = request.user_data;
  task.sequence_ = received_;
  task.payload_ = payload;
  task.request_length_ = request.length_;
  task.status_ = status;
  task.slots_end_ = slots_end;
  task.framed_ = framed;
  ++received_;
  receiver_(handler_, task);
}

// ---- To another worker

void Requester::move_to(const Endpoint& to, Wakeup wakeup) {
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

  // The tasks of what was posted again move together; by slot, as the new slots may be others.
  std::uint64_t from = received_;
  std::uint64_t slot = to.first;
  posted_ = received_;
  for (std::uint64_t i = 0; i != count; from += moving_[i++]) {
    if (!is_wanted(from, moving_[i])) continue;
    messages_of(slot++) = moving_[i];
    for (std::uint64_t message = from; message != from + moving_[i]; ++message) {
      SendTask& task = send(posted_++) = send(message);
      ++task.moves_;
    }
  }
}

/// Whether somebody waits for one of `count` messages from `first` on.
bool Requester::is_wanted(std::uint64_t first, std::uint32_t count) noexcept {
  for (std::uint64_t i = first; i != first + count; ++i) {
    if (send(i).user_data != nullptr) return true;
  }
  return false;
}

}  // namespace offload::channel
