#include <algorithm>
#include <array>
#include <utility>

#include "core/clock.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "doca/comch/control_context.hpp"
#include "doca/comch/data_contexts.hpp"
#include "doca/comch/gpu_queues.hpp"

namespace offload::doca {

using core::ErrorCode;
using core::Status;
using Progress = RemoteConsumer::Progress;

namespace {

/// The time without progress after which a stop gives up its messages.
constexpr core::Duration kLongestHalt = std::chrono::milliseconds(500);
/// The time after which it gives them up though there is progress.
constexpr core::Duration kLongestStop = std::chrono::seconds(5);

}  // namespace

progress::Context::Step ProducerContext::on_start() {
  if (!connection_->is_open()) {
    if (sender_ != nullptr) sender_->abandon();  // a kernel may have its handle
    throw core::Error(ErrorCode::not_connected, "the connection is closed");
  }
  if (sender_ != nullptr) sender_->begin(*connection_.operator->(), id_);
  request_turn();
  return Step::done;
}

Status ProducerContext::on_submit(progress::Task& task) noexcept {
  if (sender_ != nullptr) return ErrorCode::not_supported;
  auto& send = static_cast<DataTask&>(task);
  // The head, the immediate bytes and the buffers.
  std::array<iovec, 2 + kMostSentBuffers> pieces;  // of which `count` are set
  std::size_t count = 1;
  if (send.immediate.size() > kMostImmediate) return ErrorCode::invalid_value;
  const auto add = [&](std::span<const std::byte> bytes) {
    // The const_cast is safe: sendmsg(2) only reads them.
    if (!bytes.empty()) {
      pieces[count++] = {const_cast<std::byte*>(bytes.data()), bytes.size()};
    }
  };
  add(send.immediate);
  std::uint64_t length = 0;
  if (send.buffer && !send.buffer->fits(kMostSentBuffers)) return ErrorCode::invalid_value;
  for (const memory::Buffer* each = send.buffer.get(); each != nullptr; each = each->next()) {
    add(each->data());
    length += each->data().size();
  }
  if (length > kMostMessageData) return ErrorCode::invalid_value;
  RemoteConsumer* const receiver = find_receiver(send.consumer);
  if (receiver == nullptr) return ErrorCode::not_connected;
  const Status status =
      receiver->send(std::span(pieces).first(count), id_,
                     static_cast<std::uint32_t>(send.immediate.size()), send.progress_);
  if (status == Status(ErrorCode::not_connected)) receiver_.reset();
  // Acquire: pairs with the store at the end of the sending, maybe by another producer's thread.
  if (status.ok() && send.progress_.load(std::memory_order_acquire) == Progress::sending) {
    send.receiver_ = receiver_;
  }
  return status;
}

/// Most messages have the receiver of the last one. Ids are not given again, and a consumer that
/// has stopped says so itself.
RemoteConsumer* ProducerContext::find_receiver(std::uint32_t id) {
  if (!receiver_ || receiver_id_ != id) {
    receiver_ = connection_->find_consumer(id);
    receiver_id_ = id;
  }
  return receiver_.get();
}

bool ProducerContext::on_poll(std::size_t most) {
  if (sender_ != nullptr && state() == State::running && !connection_->is_open()) sender_->lose();
  if (sender_ != nullptr && sender_->has_failed() && state() == State::running) {
    core::log_info("{} {}: it cannot go on: {}", name(), id_, sender_->why());
    lost_(user_data_);
    return true;
  }
  bool worked = complete_sent(most);
  if (state() != State::stopping) return worked;
  if (sender_ != nullptr) worked = sender_->flush() || worked;
  if (!is_sending()) {
    if (sender_ != nullptr) sender_->abandon();  // it lets its memory go
    stopped();
    return true;
  }
  const core::TimePoint now = core::Clock::now();
  if (worked) end_of_halt_ = now + kLongestHalt;
  if (now >= std::min(end_of_halt_, end_of_stop_)) on_abandon();  // the next turn ends the tasks
  return worked;
}

bool ProducerContext::is_sending() noexcept {
  return first_in_flight() != nullptr || (sender_ != nullptr && sender_->is_sending());
}

bool ProducerContext::complete_sent(std::size_t most) {
  bool worked = false;
  for (auto* task = static_cast<DataTask*>(first_in_flight()); task != nullptr && most != 0;
       --most) {
    auto* const next = static_cast<DataTask*>(next_in_flight(*task));
    Progress progress = task->progress_.load(std::memory_order_acquire);  // pairs with its store
    if (progress == Progress::sending) {
      worked = task->receiver_->flush() || worked;
      progress = task->progress_.load(std::memory_order_acquire);  // the same
    }
    if (progress != Progress::sending) {
      task->receiver_.reset();
      complete(*task, progress == Progress::sent ? Status{} : ErrorCode::connection_reset);
      worked = true;
      if (state() != State::running) return true;
    }
    task = next;
  }
  return worked;
}

/// A message that has begun must be sent whole: the consumer expects all of its bytes. One that
/// does not read them for some time loses its stream.
progress::Context::Step ProducerContext::on_stop() noexcept {
  if (sender_ != nullptr) sender_->end();
  for (auto* task = static_cast<DataTask*>(first_in_flight()); task != nullptr;) {
    auto* const next = static_cast<DataTask*>(next_in_flight(*task));
    const Progress progress =
        task->progress_.load(std::memory_order_acquire);  // pairs with its store
    if (progress != Progress::sending) {
      task->receiver_.reset();
      complete(*task, progress == Progress::sent ? Status{} : ErrorCode::connection_reset);
    }
    task = next;
  }
  end_of_halt_ = core::Clock::now() + kLongestHalt;
  end_of_stop_ = core::Clock::now() + kLongestStop;
  if (is_sending()) return Step::in_progress;
  if (sender_ != nullptr) sender_->abandon();
  return Step::done;
}

core::Duration ProducerContext::arm() {
  if (in_flight() != 0) return {};
  if (state() == State::stopping) return std::chrono::milliseconds(1);
  return sender_ != nullptr ? core::Duration(std::chrono::milliseconds(10)) : core::Duration::max();
}

void ProducerContext::on_abandon() noexcept {
  if (sender_ != nullptr) sender_->abandon();
  for (auto* task = static_cast<DataTask*>(first_in_flight()); task != nullptr;
       task = static_cast<DataTask*>(next_in_flight(*task))) {
    if (task->receiver_) task->receiver_->close();
  }
}

}  // namespace offload::doca
