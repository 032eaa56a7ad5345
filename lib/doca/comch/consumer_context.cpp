#include <sys/epoll.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/error.hpp"
#include "core/log.hpp"
#include "doca/comch/control_context.hpp"
#include "doca/comch/data_contexts.hpp"
#include "doca/comch/gpu_queues.hpp"

namespace offload::doca {

using core::Error;
using core::ErrorCode;
using core::Status;

ConnectionUse::ConnectionUse(std::shared_ptr<ComchConnection> connection)
    : connection_(std::move(connection)) {
  connection_->owner().users.fetch_add(1, std::memory_order_relaxed);
}

ConnectionUse::~ConnectionUse() {
  connection_->owner().users.fetch_sub(1, std::memory_order_release);  // pairs with the read of 0
}

progress::Context::Step ConsumerContext::on_start() {
  try {
    own_ = connection_->add_consumer(*engine());
  } catch (...) {
    if (receiver_ != nullptr) receiver_->end();  // a kernel may have its handle
    throw;
  }
  head_ = {};
  missing_ = 0;
  is_in_message_ = has_head_ = false;
  return Step::in_progress;
}

progress::Context::Step ConsumerContext::on_stop() noexcept {
  if (std::exchange(is_watched_, false)) engine()->unwatch(link_->fd(), *this);
  if (receiver_ != nullptr) receiver_->end();
  link_.reset();
  connection_->remove_consumer(*own_);
  return Step::done;
}

Status ConsumerContext::on_submit(progress::Task& task) noexcept {
  if (receiver_ != nullptr) return ErrorCode::not_supported;
  const auto& receive = static_cast<const PostedReceive&>(task);
  const std::uint64_t room = receive.buffer ? receive.buffer->tailroom().size() : 0;
  try {
    link_->keep({ComchFrame::posted, 0, static_cast<std::uint32_t>(room),
                 static_cast<std::uint32_t>(room >> 32)});
  } catch (const std::bad_alloc&) {
    return ErrorCode::no_memory;
  }
  return {};
}

void ConsumerContext::on_flush() noexcept {
  if (!link_) return;
  link_->flush();
  if (link_->has_output()) request_turn();
}

bool ConsumerContext::on_poll(std::size_t most) {
  if (state() == State::starting) return poll_start();
  if (receiver_ != nullptr) {
    if (!receiver_->has_failed()) return false;
    lose(receiver_->why());
    return true;
  }
  bool worked = false;
  try {
    link_->flush();
    while (most-- != 0 && receive_one()) {
      worked = true;
      if (state() != State::running || !link_->may_have_more()) break;
    }
  } catch (const Error& error) {
    lose(error.what());
    worked = true;
  }
  return worked;
}

bool ConsumerContext::poll_start() {
  try {
    if (!connection_->is_open()) throw Error(ErrorCode::not_connected, "the connection is closed");
    if (!link_) link_ = connection_->take_link(*own_);
    if (!link_) return false;
    if (!own_->is_servers) {
      link_->flush();
      const auto frame = link_->next_frame(0);
      if (!frame) return false;
      if (frame->head.kind != ComchFrame::attached) {
        throw Error(ErrorCode::bad_message, "the server sent an invalid frame");
      }
    }
    if (receiver_ != nullptr) {
      receiver_->begin(std::move(link_));
    } else {
      engine()->watch(link_->fd(), EPOLLIN, *this);
      is_watched_ = true;
    }
    started();
  } catch (const Error& error) {
    core::log_error("{}: cannot start: {}", name(), error.what());
    link_.reset();
    if (receiver_ != nullptr) receiver_->end();
    connection_->remove_consumer(*own_);
    stopped();
  }
  return true;
}

/// Returns whether a message was received whole.
bool ConsumerContext::receive_one() {
  if (!is_in_message_ && !begin_message()) return false;
  auto& task = static_cast<PostedReceive&>(*first_in_flight());
  while (missing_ != 0) {
    const std::size_t count = link_->receive_into(task.buffer->tailroom().first(missing_));
    if (count == 0) return false;
    static_cast<void>(task.buffer->append(count));  // there was room
    missing_ -= count;
  }
  is_in_message_ = false;
  complete(task, {});  // may submit, and stop the context
  return true;
}

bool ConsumerContext::begin_message() {
  if (!has_head_) {
    const auto bytes = link_->take(sizeof head_);
    if (!bytes) return false;
    std::memcpy(&head_, bytes->data(), sizeof head_);
    has_head_ = true;
  }
  auto* const task = static_cast<PostedReceive*>(first_in_flight());
  const std::uint32_t immediate = head_.second;
  if (head_.kind != ComchFrame::data || task == nullptr || immediate > kMostImmediate ||
      immediate > head_.length ||
      head_.length - immediate > (task->buffer ? task->buffer->tailroom().size() : 0)) {
    throw Error(ErrorCode::bad_message, "a producer sent an invalid frame");
  }
  const auto bytes = link_->take(immediate);
  if (!bytes) return false;
  std::copy(bytes->begin(), bytes->end(), task->immediate.begin());
  task->immediate_length = immediate;
  task->producer = head_.first;
  missing_ = head_.length - immediate;
  has_head_ = false;
  is_in_message_ = true;
  return true;
}

/// Fails the oldest task, which stops a context of the C interface, or says that the peer is gone.
void ConsumerContext::lose(const std::string& why) noexcept {
  core::log_info("{} {}: it cannot go on: {}", name(), id(), why);
  if (progress::Task* const task = first_in_flight()) {
    complete(*task, ErrorCode::connection_reset);
  } else {
    lost_(user_data_);
  }
}

core::Duration ConsumerContext::arm() {
  const bool must_poll = state() == State::starting || (link_ && link_->has_output());
  if (receiver_ != nullptr && !must_poll) return std::chrono::milliseconds(10);
  return must_poll ? core::Duration(std::chrono::milliseconds(1)) : core::Duration::max();
}

}  // namespace offload::doca
