#include "doca/comch/control_context.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "core/error.hpp"
#include "core/log.hpp"

namespace offload::doca {

using core::Error;
using core::ErrorCode;
using core::Status;

namespace {

/// The time that a stop waits for the peers to close their ends.
constexpr core::Duration kLongestEnd = std::chrono::milliseconds(500);
/// Pause of a sleeping engine where something is found by polling only.
constexpr core::Duration kPause = std::chrono::milliseconds(1);
/// Up to this number of connections, each is read in each turn; above it, only after an event.
constexpr std::size_t kFewConnections = 4;
/// Messages of a connection in one turn.
constexpr int kFramesAtOnce = 64;

}  // namespace

std::shared_ptr<ComchConnection> ControlContext::find(
    const ComchConnection* connection) const noexcept {
  const auto found = std::find_if(connections_.begin(), connections_.end(),
                                  [&](const auto& each) { return each.get() == connection; });
  return found != connections_.end() ? *found : nullptr;
}

Introduction ControlContext::introduction(std::uint64_t token) const noexcept {
  Introduction own;
  own.longest_message = longest_message_;
  own.receive_queue = receive_queue_;
  own.token = token;
  return own;
}

Introduction ControlContext::read_introduction(std::span<const std::byte> payload) {
  Introduction peer;
  check_message(payload.size() >= sizeof peer);
  std::memcpy(&peer, payload.data(), sizeof peer);
  if (peer.version != Introduction::kVersion) {
    throw Error(ErrorCode::unsupported_version, "the peer is of another version of this library");
  }
  check_message(peer.longest_message <= kMostMessage && peer.receive_queue != 0 &&
                peer.receive_queue <= kMostQueue);
  return peer;
}

void ControlContext::check_message(bool is_valid) {
  if (!is_valid) throw Error(ErrorCode::bad_message, "the peer sent an invalid frame");
}

ComchConnection& ControlContext::add(std::unique_ptr<Link> link, std::uint64_t token,
                                     const Introduction& peer, bool is_server) {
  return *connections_.emplace_back(
      std::make_shared<ComchConnection>(*this, std::move(link), token, peer, is_server));
}

Status ControlContext::on_submit(progress::Task& task) noexcept {
  auto& send = static_cast<MessageTask&>(task);
  if (!send.connection || &send.connection->owner() != this) return ErrorCode::invalid_value;
  ComchConnection& connection = *send.connection;
  if (!connection.is_open()) return ErrorCode::not_connected;
  if (send.message.size() > connection.longest_message_) return ErrorCode::invalid_value;
  bool has_room = false;
  try {
    announce_changes(connection);
    has_room = send_waiting(connection);
  } catch (const std::bad_alloc&) {
    has_room = false;  // the next turn tries again
  }
  try {
    if (has_room) {
      send_one(connection, send, send.message);
    } else {
      send.copy_.assign(send.message.begin(), send.message.end());
      connection.waiting_.push_back(&send);
    }
  } catch (const std::bad_alloc&) {
    return ErrorCode::no_memory;
  }
  request_turn();
  try {
    if (has_room) send_waiting(connection);  // it may have been sent
  } catch (const std::bad_alloc&) {
    return {};  // the next turn ends it
  }
  return {};
}

bool ControlContext::send_waiting(ComchConnection& connection) {
  while (connection.link_->flush()) {
    if (connection.sending_ != nullptr) {
      ended_.push_back({static_cast<MessageTask*>(connection.sending_), {}});
      connection.sending_ = nullptr;
    }
    if (connection.credit_ == 0 || holds_messages()) return false;
    if (connection.waiting_.empty()) return true;
    progress::Task& next = *connection.waiting_.front();
    send_one(connection, next, static_cast<const MessageTask&>(next).copy_);
    connection.waiting_.pop_front();
  }
  return false;
}

void ControlContext::send_one(ComchConnection& connection, progress::Task& task,
                              std::span<const std::byte> message) {
  connection.link_->send({ComchFrame::message}, message);
  --connection.credit_;
  connection.sending_ = &task;
}

bool ControlContext::on_poll(std::size_t most) {
  if (state() == State::stopping) return poll_ending();
  bool worked = poll_streams();
  for (std::size_t i = 0; i < connections_.size() && state() == State::running; ++i) {
    const std::shared_ptr<ComchConnection> connection = connections_[i];
    worked = poll_connection(*connection) || worked;
  }
  return complete_ended(most) || worked;
}

bool ControlContext::poll_connection(ComchConnection& connection) {
  bool worked = false;
  try {
    worked = announce_changes(connection);
    send_waiting(connection);
    if (!connection.is_readable_ && connections_.size() > kFewConnections) return worked;
    connection.is_readable_ = false;
    for (int i = 0; i < kFramesAtOnce && !holds_messages(); ++i) {
      const auto frame = connection.link_->next_frame(kMostMessage);
      if (!frame) return worked;
      worked = true;
      take_frame(connection, *frame);
      if (!connection.is_open() || state() != State::running) break;
      if (!connection.link_->may_have_more()) return worked;
    }
    connection.is_readable_ = true;  // maybe: it was not read to the end
  } catch (const Error& error) {
    core::log_info("{}: a connection has ended: {}", name(), error.what());
    remove(connection);
    on_closed(connection);
    worked = true;
  }
  connection.drop_closed();
  return worked;
}

/// Carries out the changes of this side's consumers. Returns whether there were any.
bool ControlContext::announce_changes(ComchConnection& connection) {
  if (!connection.has_notices()) return false;
  const auto notices = connection.take_notices();
  for (const ComchConnection::Notice& notice : notices) {
    announce(connection, notice.consumer, notice.is_new);
  }
  return !notices.empty();
}

void ControlContext::take_frame(ComchConnection& connection, const Link::Frame& frame) {
  const FrameHead& head = frame.head;
  switch (head.kind) {
    case ComchFrame::message: {
      check_message(connection.taken_ < receive_queue_ && frame.payload.size() <= longest_message_);
      // The peer opened its streams before it sent the message, so once after each arrival.
      if (std::exchange(connection.arrivals_, connection.link_->arrivals()) !=
          connection.link_->arrivals()) {
        take_streams();
        if (!connection.is_open() || state() != State::running) return;
      }
      ++connection.taken_;
      // The const_cast is safe: the bytes are in a buffer of the link.
      events_->on_message(connection,
                          {const_cast<std::byte*>(frame.payload.data()), frame.payload.size()});
      if (!connection.is_open() || connection.taken_ < (receive_queue_ + 1) / 2) return;
      connection.link_->send({ComchFrame::credit, 0, std::exchange(connection.taken_, 0)});
      return;
    }
    case ComchFrame::credit:
      check_message(head.first <= kMostQueue - std::min(connection.credit_, kMostQueue));
      connection.credit_ += head.first;
      send_waiting(connection);
      return;
    case ComchFrame::consumer_new: reach_consumer(connection, head.first); return;
    case ComchFrame::consumer_gone:
      if (connection.remove_remote(head.first)) {
        events_->on_consumer(connection, head.first, false);
      }
      return;
    case ComchFrame::unreachable: connection.fail_own(head.first); return;
    default: check_message(false);
  }
}

bool ControlContext::complete_ended(std::size_t most) {
  bool worked = false;
  for (; most != 0 && !ended_.empty(); --most) {
    const Ended ended = ended_.pop_front();
    complete(*ended.task, ended.status);  // may submit and stop
    worked = true;
  }
  return worked;
}

void ControlContext::remove(ComchConnection& connection) noexcept {
  connection.close();
  const auto fail = [&](progress::Task* task) {
    ended_.push_back({static_cast<MessageTask*>(task), ErrorCode::connection_reset});
  };
  if (connection.sending_ != nullptr) fail(std::exchange(connection.sending_, nullptr));
  for (progress::Task* const task : connection.waiting_.all()) fail(task);
  connection.waiting_.clear();
  request_turn();  // for ended_
  std::erase_if(connections_, [&](const auto& each) { return each.get() == &connection; });
}

void ControlContext::disconnect(ComchConnection& connection) noexcept {
  const std::shared_ptr<ComchConnection> kept = find(&connection);
  if (kept) remove(connection);
}

progress::Context::Step ControlContext::on_stop() noexcept {
  complete_ended(SIZE_MAX);
  close_streams();
  for (const auto& connection : connections_) connection->waiting_.clear();
  end_of_stop_ = core::Clock::now() + kLongestEnd;
  return connections_.empty() ? Step::done : Step::in_progress;
}

bool ControlContext::poll_ending() {
  std::array<std::byte, 4096> unread;
  for (std::size_t i = 0; i < connections_.size();) {
    ComchConnection& connection = *connections_[i];
    try {
      Link& link = *connection.link_;
      send_waiting(connection);  // none waits: it is the rest of a message
      if (!link.has_output() && !std::exchange(connection.has_ended_output_, true)) {
        link.end_output();
      }
      for (int j = 0; j < kFramesAtOnce && link.receive_into(unread) != 0; ++j) continue;
      ++i;
    } catch (const Error&) {
      remove(connection);  // the peer has closed its end
    }
  }
  if (core::Clock::now() >= end_of_stop_) close_all();
  if (!connections_.empty()) return false;
  complete_ended(SIZE_MAX);
  stopped();
  return true;
}

void ControlContext::close_all() noexcept {
  close_streams();
  while (!connections_.empty()) remove(*connections_.back());
  ended_.clear();
}

core::Duration ControlContext::arm() {
  if (!ended_.empty()) return {};
  const bool has_output = std::any_of(connections_.begin(), connections_.end(),
                                      [](const auto& each) { return each->link_->has_output(); });
  return has_output || has_pending_streams() || state() != State::running ? kPause
                                                                          : core::Duration::max();
}

}  // namespace offload::doca
