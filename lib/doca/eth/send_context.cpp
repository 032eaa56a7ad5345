#include <algorithm>
#include <chrono>
#include <utility>

#include "core/error.hpp"
#include "core/log.hpp"
#include "doca/eth/contexts.hpp"
#include "doca/eth/gpu_queues.hpp"
#include "kernels/packets/headers.hpp"

namespace offload::doca {

using core::ErrorCode;
using core::Status;

progress::Context::Step EthSendContext::on_start() {
  in_queue_.assign(EthPort::kFrames, nullptr);
  std::optional<std::uint32_t> queue;
  try {
    port_ = EthPort::open(interface_);
    queue = port_->begin_sending();
    if (sender_ != nullptr) sender_->begin(port_, *queue);
  } catch (...) {
    if (sender_ != nullptr) sender_->end();  // a kernel may have its handle
    if (queue) port_->end_sending(*queue);
    port_.reset();
    throw;
  }
  queue_ = *queue;
  next_look_ = {};
  next_ = nullptr;
  return Step::done;
}

progress::Context::Step EthSendContext::on_stop() noexcept {
  if (sender_ != nullptr) sender_->end();
  // Frames in the queue are copies: they are sent without their tasks.
  port_->wake(queue_);
  port_->end_sending(queue_);
  port_.reset();
  in_queue_.clear();
  next_ = nullptr;
  return Step::done;
}

Status EthSendContext::on_submit(progress::Task& task) noexcept {
  if (sender_ != nullptr) return ErrorCode::not_supported;
  auto& send = static_cast<EthSendTask&>(task);
  if (!send.buffer) return ErrorCode::invalid_value;
  if (!send.buffer->fits(kMostFrameBuffers) || !send.buffer->all_in_host()) {
    return ErrorCode::not_supported;
  }
  const std::size_t length = send.buffer->total_length();
  if (length < kernels::packets::kEthernetBytes || length > EthPort::kMostFrame) {
    return ErrorCode::invalid_value;
  }
  if (next_ == nullptr) next_ = &send;
  return {};
}

void EthSendContext::write(const EthSendTask& task, const EthPort::Room& room) const noexcept {
  std::size_t length = 0;
  for (const memory::Buffer* buffer = task.buffer.get(); buffer != nullptr;
       buffer = buffer->next()) {
    // The program may have changed the list since the submission.
    const auto data =
        buffer->data().first(std::min(buffer->data().size(), EthPort::kMostFrame - length));
    std::copy(data.begin(), data.end(), room.bytes.begin() + static_cast<std::ptrdiff_t>(length));
    length += data.size();
  }
  const auto frame = room.bytes.first(length);
  write_checksums(frame, writes_ip_checksum_, writes_transport_checksum_);
  port_->send(queue_, room, static_cast<std::uint32_t>(frame.size()));
}

void EthSendContext::on_flush() noexcept {
  if (next_ == nullptr) return;
  while (next_ != nullptr) {
    const auto room = port_->take_room(queue_);
    if (!room) break;
    write(*next_, *room);
    in_queue_[room->number] = next_;
    next_ = static_cast<EthSendTask*>(next_in_flight(*next_));
  }
  port_->wake(queue_);
}

bool EthSendContext::on_poll(std::size_t most) {
  if (in_flight() == 0) return false;
  if (port_->is_gone(engine()->now(), next_look_)) {
    // Its end stops a context of the C interface, which ends the others.
    complete(*first_in_flight(), ErrorCode::not_connected);
    return true;
  }
  std::array<std::uint32_t, kAtOnce> sent{};
  const std::size_t count =
      port_->take_sent(queue_, std::span(sent).first(std::min(most, kAtOnce)));
  std::array<EthSendTask*, kAtOnce> ended{};
  for (std::size_t i = 0; i < count; ++i) {
    ended.at(i) = std::exchange(in_queue_[sent.at(i)], nullptr);
  }
  for (std::size_t i = 0; i < count && state() == State::running; ++i) {
    if (ended.at(i) != nullptr) complete(*ended.at(i), {});  // null: of an earlier start
  }
  if (state() != State::running || in_flight() == 0) return count != 0;
  if (count != 0) on_flush();
  port_->wake(queue_);
  return count != 0;
}

core::Duration EthSendContext::arm() {
  return in_flight() != 0 ? std::chrono::microseconds(50) : core::Duration::max();
}

}  // namespace offload::doca
