#include <algorithm>
#include <cstring>
#include <utility>

#include "core/error.hpp"
#include "doca/comch/data_contexts.hpp"
#include "doca/comch/gpu_queues.hpp"

namespace offload::doca {

using core::Error;
using core::ErrorCode;
using Progress = RemoteConsumer::Progress;

namespace {

/// The bytes of messages that are kept, if there are several.
constexpr std::size_t kMostKept = std::size_t{8} * 1024 * 1024;
static_assert(OFFLOAD_GPU_COMCH_IMMEDIATE == kMostImmediate);

}  // namespace

void GpuSender::begin(ComchConnection& connection, std::uint32_t producer) {
  connection_ = &connection;
  producer_ = producer;
  mover_.add(*this);
}

void GpuSender::end() noexcept {
  if (connection_ != nullptr) mover_.remove(*this);
  if (!has_failed()) ring_.set_state(DOCA_ERROR_BAD_STATE);
  connection_ = nullptr;
  copies_.clear();
  const std::size_t begun = is_sending() ? 1 : 0;
  while (outgoing_.size() > begun) outgoing_.pop_back();
}

void GpuSender::lose() noexcept {
  mover_.remove(*this);
  fail("the peer is gone");
}

bool GpuSender::is_sending() const noexcept {
  return !outgoing_.empty() && outgoing_.front().consumer &&
         // Acquire: pairs with the store at the end of the sending.
         outgoing_.front().progress.load(std::memory_order_acquire) == Progress::sending;
}

bool GpuSender::flush() noexcept {
  return is_sending() && outgoing_.front().consumer->flush();
}

void GpuSender::abandon() noexcept {
  end();
  if (is_sending()) outgoing_.front().consumer->close();
  outgoing_.clear();
}

bool GpuSender::gather(GpuStaging& staging) noexcept {
  if (has_failed()) return false;
  try {
    const bool worked = read_sends();
    begin_copies(staging);
    return worked || !copies_.empty();
  } catch (const Error& error) {
    fail(error.what());
  } catch (const std::bad_alloc&) {
    fail("there is no memory");
  }
  return true;
}

bool GpuSender::read_sends() {
  bool worked = false;
  while (outgoing_.empty() || kept_ < kMostKept) {
    const auto request = ring_.next_request();
    if (!request) break;
    auto memory = MemoryUse::find(request->mkey, request->address, request->length);
    if (!memory || request->length > kMostMessageData ||
        request->immediate_length > kMostImmediate) {
      throw Error(ErrorCode::invalid_value, "a kernel sent an invalid message");
    }
    outgoing_.emplace_back(*request, std::move(*memory));
    kept_ += request->length;
    worked = true;
  }
  return worked;
}

void GpuSender::begin_copies(GpuStaging& staging) {
  for (Outgoing& message : outgoing_) {
    if (message.asked == message.length()) continue;
    const std::span<std::byte> piece = staging.take(message.length() - message.asked);
    if (piece.empty()) return;
    copies_.push_back({&message, piece});
    gpu_->copy_out(piece.data(), message.memory.bytes().data() + message.asked, piece.size());
    message.asked += piece.size();
  }
}

bool GpuSender::pass_on() noexcept {
  if (has_failed()) return false;
  bool worked = false;
  for (const Copy& copy : copies_) {
    std::memcpy(copy.of->bytes.get() + copy.of->copied, copy.from.data(), copy.from.size());
    copy.of->copied += copy.from.size();
  }
  copies_.clear();
  try {
    while (!outgoing_.empty() && send_oldest()) {
      offload_gpu_comch_event event{};
      event.message_id = outgoing_.front().request.message_id;
      ring_.write(event);
      kept_ -= outgoing_.front().request.length;
      outgoing_.pop_front();
      worked = true;
    }
  } catch (const Error& error) {
    fail(error.what());
    return true;
  } catch (const std::bad_alloc&) {
    fail("there is no memory");
    return true;
  }
  if (worked) ring_.publish();
  return worked;
}

bool GpuSender::send_oldest() {
  Outgoing& message = outgoing_.front();
  if (message.copied != message.length()) return false;
  if (!message.consumer) {
    auto consumer = connection_->find_consumer(message.request.consumer);
    if (!consumer) throw Error(ErrorCode::not_connected, "the peer has no such consumer");
    std::array<iovec, 3> pieces{};  // the head, the immediate bytes, the others
    std::size_t count = 1;
    if (message.request.immediate_length != 0) {
      pieces[count++] = {message.request.immediate, message.request.immediate_length};
    }
    if (message.length() != 0) pieces[count++] = {message.bytes.get(), message.length()};
    const core::Status status = consumer->send(std::span(pieces).first(count), producer_,
                                               message.request.immediate_length, message.progress);
    if (!status.ok()) {
      if (status.error() == ErrorCode::again) return false;
      throw Error(status.error(), "the consumer cannot take the message");
    }
    message.consumer = std::move(consumer);
  } else {
    message.consumer->flush();
  }
  // Acquire: pairs with the store at the end of the sending.
  const Progress progress = message.progress.load(std::memory_order_acquire);
  if (progress == Progress::failed) throw Error(ErrorCode::connection_reset, "the peer is gone");
  return progress == Progress::sent;
}

}  // namespace offload::doca
