#include <sys/epoll.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/error.hpp"
#include "core/log.hpp"
#include "doca/eth/contexts.hpp"
#include "doca/eth/gpu_queues.hpp"

namespace offload::doca {

using core::ErrorCode;
using core::Status;

progress::Context::Step EthReceiveContext::on_start() {
  try {
    port_ = EthPort::open(interface_);
  } catch (...) {
    if (receiver_ != nullptr) receiver_->end();  // a kernel may have its handle
    throw;
  }
  next_look_ = {};
  return Step::done;
}

progress::Context::Step EthReceiveContext::on_stop() noexcept {
  if (receiver_ != nullptr) receiver_->end();
  if (queue_) {
    if (watched_.valid()) engine()->unwatch(watched_.get(), *this);
    watched_.reset();
    port_->end_receiving(*queue_);
    queue_.reset();
  }
  port_.reset();
  return Step::done;
}

void EthReceiveContext::set_queue(std::uint32_t queue) {
  if (state() != State::running || queue_) {
    core::throw_bad_state(name(), queue_ ? "receiving from a queue" : "not running", "get a queue");
  }
  port_->begin_receiving(queue);
  try {
    if (receiver_ != nullptr) {
      receiver_->begin(port_, queue);
    } else {
      watched_ = port_->watch(queue);
      engine()->watch(watched_.get(), EPOLLIN | EPOLLET, *this);
    }
  } catch (...) {
    watched_.reset();
    port_->end_receiving(queue);
    throw;
  }
  queue_ = queue;
}

Status EthReceiveContext::on_submit(progress::Task& task) noexcept {
  if (receiver_ != nullptr) return ErrorCode::not_supported;
  const auto& receive = static_cast<const EthReceiveTask&>(task);
  if (!receive.buffer) return ErrorCode::invalid_value;
  if (receive.buffer->next() != nullptr || !receive.buffer->all_in_host()) {
    return ErrorCode::not_supported;
  }
  if (!memory::includes(receive.buffer->region().access(), memory::Access::local_write)) {
    return ErrorCode::not_permitted;
  }
  return {};
}

bool EthReceiveContext::fill(EthReceiveTask& task, std::span<const std::byte> frame) const {
  const auto room = task.buffer->tailroom();
  if (frame.size() > room.size()) return false;
  std::copy(frame.begin(), frame.end(), room.begin());
  static_cast<void>(task.buffer->append(frame.size()));
  task.hash = wants_hash_ ? hash_of(frame) : 0;
  if (wants_time_) {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    task.time = static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
  }
  return true;
}

/// Returns the number of frames that were taken; tasks may be completed with them.
std::size_t EthReceiveContext::receive(std::size_t most) {
  std::array<EthReceiveTask*, kAtOnce> filled{};
  std::array<bool, kAtOnce> fits{};
  std::size_t count = 0;
  auto* next = static_cast<EthReceiveTask*>(first_in_flight());
  const std::size_t frames = port_->receive(
      *queue_, std::min({most, in_flight(), kAtOnce}), [&](std::span<const std::byte> frame) {
        fits.at(count) = fill(*next, frame);
        filled.at(count++) = next;
        next = static_cast<EthReceiveTask*>(next_in_flight(*next));
      });
  for (std::size_t i = 0; i < count; ++i) {
    // A callback may stop the context, which completes the others.
    if (state() != State::running) break;
    complete(*filled.at(i), fits.at(i) ? Status() : ErrorCode::io_failed);
  }
  return frames;
}

bool EthReceiveContext::on_poll(std::size_t most) {
  if (in_flight() == 0) return false;
  if (port_->is_gone(engine()->now(), next_look_)) {
    complete(*first_in_flight(), ErrorCode::not_connected);
    return true;
  }
  if (!queue_) return false;
  return receive(most) != 0;
}

}  // namespace offload::doca
