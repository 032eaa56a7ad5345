#include <algorithm>
#include <cstring>
#include <utility>

#include "core/error.hpp"
#include "core/log.hpp"
#include "doca/comch/data_contexts.hpp"
#include "doca/comch/gpu_queues.hpp"

namespace offload::doca {

using core::Error;
using core::ErrorCode;

namespace {

/// Messages of a consumer in one turn.
constexpr int kMessagesAtOnce = 256;

}  // namespace

void GpuPath::fail(const char* why) noexcept {
  if (has_failed()) return;
  keep_failure(why);
  publish_failure();
}

void GpuPath::keep_failure(const char* why) noexcept {
  try {
    why_ = why;
  } catch (const std::bad_alloc&) {
    why_.clear();
  }
  is_failing_ = true;
}

void GpuPath::publish_failure() noexcept {
  ring_.set_state(DOCA_ERROR_IO_FAILED);
  has_failed_.store(true, std::memory_order_release);  // pairs with has_failed()
}

void GpuReceiver::begin(std::unique_ptr<Link> link) {
  link_ = std::move(link);
  mover_.add(*this);
}

void GpuReceiver::end() noexcept {
  if (link_) mover_.remove(*this);
  if (!has_failed()) ring_.set_state(DOCA_ERROR_BAD_STATE);
  link_.reset();
  posted_.clear();
}

bool GpuReceiver::gather(GpuStaging& staging) noexcept {
  if (has_failed()) return false;
  try {
    bool worked = read_posts();
    link_->flush();
    for (int i = 0; i < kMessagesAtOnce && receive_one(staging); ++i) worked = true;
    return worked;
  } catch (const Error& error) {
    keep_failure(error.what());
  } catch (const std::bad_alloc&) {
    keep_failure("there is no memory");
  }
  return true;
}

bool GpuReceiver::read_posts() {
  bool worked = false;
  while (const auto request = ring_.next_request()) {
    auto memory = MemoryUse::find(request->mkey, request->address, request->length);
    if (request->mkey != key_ || !memory) {
      throw Error(ErrorCode::invalid_value, "a kernel posted a buffer that is not in the mmap");
    }
    posted_.push_back({*request, std::move(*memory)});
    link_->keep({ComchFrame::posted, 0, request->length});
    worked = true;
  }
  return worked;
}

/// Returns whether a message was received whole.
bool GpuReceiver::receive_one(GpuStaging& staging) {
  if (!is_in_message_ && !begin_message()) return false;
  const std::span<std::byte> to = posted_[received_].memory.bytes();
  while (arrived_ != event_.length) {
    const std::span<std::byte> piece = staging.take(event_.length - arrived_);
    if (piece.empty()) return false;
    const std::size_t count = link_->receive_into(piece);
    staging.give_back(piece.size() - count);
    if (count == 0) return false;
    gpu_->copy_in(to.data() + arrived_, piece.data(), count);
    arrived_ += count;
  }
  is_in_message_ = false;
  events_.push_back(event_);
  ++received_;
  return true;
}

bool GpuReceiver::begin_message() {
  if (!has_head_) {
    const auto bytes = link_->take(sizeof head_);
    if (!bytes) return false;
    std::memcpy(&head_, bytes->data(), sizeof head_);
    has_head_ = true;
  }
  const std::uint32_t immediate = head_.second;
  if (head_.kind != ComchFrame::data || received_ == posted_.size() || immediate > kMostImmediate ||
      immediate > head_.length || head_.length - immediate > posted_[received_].request.length) {
    throw Error(ErrorCode::bad_message, "a producer sent an invalid frame");
  }
  const auto bytes = link_->take(immediate);
  if (!bytes) return false;
  const offload_gpu_comch_request& request = posted_[received_].request;
  event_ = {};
  event_.address = request.address;
  event_.mkey = request.mkey;
  event_.length = head_.length - immediate;
  event_.immediate_length = immediate;
  std::memcpy(event_.immediate, bytes->data(), immediate);
  arrived_ = 0;
  has_head_ = false;
  is_in_message_ = true;
  return true;
}

/// The kernel gets the messages that have arrived before a failure.
bool GpuReceiver::pass_on() noexcept {
  if (has_failed() || (received_ == 0 && !is_failing_)) return false;
  for (const offload_gpu_comch_event& event : events_) ring_.write(event);
  ring_.publish();
  events_.clear();
  posted_.erase(posted_.begin(), posted_.begin() + static_cast<std::ptrdiff_t>(received_));
  received_ = 0;
  if (is_failing_) {
    publish_failure();
  } else {
    link_->flush();
  }
  return true;
}

}  // namespace offload::doca
