#include "apps/client/load/load_connection.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <utility>

#include "apps/client/load/checker.hpp"
#include "core/error.hpp"

namespace offload::client {

using core::Clock;
using core::TimePoint;

LoadConnection::LoadConnection(std::string name, std::uint32_t number, net::Stream stream,
                               LoadShare& share)
    : Flow(std::move(name), number, share),
      address_(share.address),
      pending_(std::bit_ceil(share.plan.max_in_flight)),
      pending_mask_(pending_.size() - 1),
      received_(share.cache, share.receive_size) {
  pieces_.reserve(share.pool.class_count() == 1 ? 1 : share.longest_batch);
  use(std::move(stream));
}

void LoadConnection::on_events(std::uint32_t epoll_events) {
  if (over()) return;
  if (attempt_) return continue_connecting();
  if ((epoll_events & ~std::uint32_t{EPOLLOUT}) != 0) {
    while (receive_responses()) continue;
  }
  if (!over() && stream_.valid()) go_on();
}

/// Sends all that may be sent, and ends or connects again if this connection has no more work.
void LoadConnection::go_on() {
  if (!stream_.valid()) return;  // it connects again
  const bool flushed = is_open_loop() ? flush() : fill_window();
  watch_for_room(!flushed && send_error_.empty());
  if (is_open_loop() && !over() && pieces_.empty() && next_batch() != 0) join_ready();
  if (over() || in_flight() != 0) return;
  if (sent_ >= request_limit_) return end();
  if (sent_ >= connection_limit_) {
    close();
    now_ = Clock::now();
    give_up_at_ = now_ + share_.plan.connect_timeout;
    connect(now_);
  }
}

void LoadConnection::stop_sending() noexcept {
  request_limit_ = sent_;
  leave_ready();
  if (!over() && in_flight() == 0) end();
}

void LoadConnection::end() noexcept {
  if (!set_over()) return;
  // The server may close its end before the run is over.
  if (attempt_) share_.engine.unwatch(attempt_->fd(), *this);
  if (stream_.valid()) share_.engine.unwatch(stream_.fd(), *this);
}

std::uint32_t LoadConnection::next_batch() const noexcept {
  if (!send_error_.empty()) return 0;
  const std::uint64_t window = share_.plan.max_in_flight - in_flight() - thinking_;
  const std::uint64_t left = std::min(request_limit_, connection_limit_) - sent_;
  return static_cast<std::uint32_t>(std::min({window, left, std::uint64_t{share_.longest_batch}}));
}

void LoadConnection::start_batch(std::uint32_t count) {
  if (in_flight() == 0) {
    last_sign_ = now_;
    share_.next_check = std::min(share_.next_check, now_ + share_.plan.response_timeout);
  }
  share_.account_in_flight(now_);
  count = share_.pool.class_count() == 1 ? add_run_of_one_size(count) : add_mixed(count);
  share_.in_flight += count;
  share_.interval->sent += count;
}

/// Chooses consecutive requests from a random number on, so that the server cannot predict them and
/// they are one piece; in order, up to the last one. Returns how many.
std::uint32_t LoadConnection::add_run_of_one_size(std::uint32_t count) {
  const bool in_order = share_.plan.in_order;
  if (in_order) count = std::min(count, left_in_order());
  const auto first =
      in_order ? take_in_order(count)
               : static_cast<std::uint32_t>(random() % (share_.pool.count_of(0) - count + 1));
  const auto frames = share_.pool.frames(first, count);
  pieces_.push_back({const_cast<std::byte*>(frames.data()), frames.size()});
  for (std::uint32_t i = 0; i < count; ++i) add_pending(first + i);
  return count;
}

/// Chooses each request by itself. Returns how many, which are fewer if they are long.
std::uint32_t LoadConnection::add_mixed(std::uint32_t count) {
  std::size_t bytes = 0;
  std::uint32_t added = 0;
  for (; added < count && bytes < kBatchBytes; ++added) {
    const std::uint32_t number = choose();
    const auto frame = share_.pool.frames(number, 1);
    pieces_.push_back({const_cast<std::byte*>(frame.data()), frame.size()});
    add_pending(number);
    bytes += frame.size();
  }
  return added;
}

bool LoadConnection::flush() {
  while (!pieces_.empty()) {
    const auto left = std::span(pieces_).subspan(next_piece_);
    const ssize_t count = left.size() == 1
                              ? stream_.send(std::as_bytes(std::span(
                                    static_cast<const char*>(left[0].iov_base), left[0].iov_len)))
                              : stream_.send(left);
    if (count < 0) {
      if (errno == EAGAIN || errno == EWOULDBLOCK) return false;
      if (errno == EINTR) continue;
      // Does not end the connection: an error frame that the server sent may still be unread.
      send_error_ = stream_.describe_error(errno);
      pieces_.clear();
      next_piece_ = 0;
      return false;
    }
    share_.interval->tx_bytes += static_cast<std::uint64_t>(count);
    skip_sent(static_cast<std::size_t>(count));
  }
  return true;
}

void LoadConnection::skip_sent(std::size_t count) noexcept {
  while (next_piece_ < pieces_.size() && count >= pieces_[next_piece_].iov_len) {
    count -= pieces_[next_piece_++].iov_len;
  }
  if (next_piece_ == pieces_.size()) {
    pieces_.clear();
    next_piece_ = 0;
    return;
  }
  iovec& piece = pieces_[next_piece_];
  piece.iov_base = static_cast<std::byte*>(piece.iov_base) + count;
  piece.iov_len -= count;
}

/// Watches EPOLLOUT only while bytes are unsent, as a socket nearly always has room.
void LoadConnection::watch_for_room(bool wanted) {
  if (wanted == watches_for_room_) return;
  share_.engine.rewatch(stream_.fd(), wanted ? EPOLLIN | EPOLLOUT : EPOLLIN, *this);
  watches_for_room_ = wanted;
}

/// Reads once and checks the complete responses. Returns whether to read again, because epoll does
/// not report the rest.
bool LoadConnection::receive_responses() {
  const auto room = received_.room(0);
  if (room.empty()) {
    lose_connection(ErrorKind::reset, "there is no memory for responses");
    return false;
  }
  const ssize_t count = stream_.receive(room);
  if (count < 0) {
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return false;
    lose_connection(ErrorKind::reset,
                    "the connection failed (" + stream_.describe_error(errno) + ")");
    return false;
  }
  if (count == 0) {
    lose_connection(ErrorKind::closed, "the server closed the connection");
    return false;
  }
  now_ = Clock::now();
  last_sign_ = now_;
  received_.append(static_cast<std::size_t>(count));
  share_.interval->rx_bytes += static_cast<std::uint64_t>(count);
  if (share_.sending_ended) [[unlikely]]
    share_.interval->rx_bytes_after_end += static_cast<std::uint64_t>(count);
  share_.account_in_flight(now_);
  check_responses();
  if (!stream_.valid()) return false;
  received_.settle(0);
  return stream_.has_pending() && !over();
}

void LoadConnection::check_responses() {
  const bool may_take_equal = this->may_take_equal();
  while (!received_.bytes().empty()) {
    if (in_flight() == 0) return take_unasked();
    if (may_take_equal && complete_equal()) continue;
    const Pending& request = pending(completed_);
    const Expected& expected = share_.pool.response(request.number);
    if (const std::size_t size = right_frame(received_.bytes(), expected); size != 0) [[likely]] {
      if (!complete_right(request, size)) return;
      continue;
    }
    const FrameCheck verdict = judge(received_.bytes(), expected);
    if (verdict.state == FrameCheck::State::incomplete) return;
    if (!complete_wrong(request, verdict)) return;
  }
}

/// Completes the oldest requests in flight that were sent together, as far as their responses are
/// there and right. Returns whether there was one.
bool LoadConnection::complete_equal() {
  const TimePoint sent = pending(completed_).sent;
  const std::uint64_t first = completed_;
  const auto bytes = received_.bytes();
  std::size_t taken = 0;
  for (; completed_ != sent_; ++completed_) {
    const Pending& request = pending(completed_);
    if (request.sent != sent) break;
    const std::size_t size =
        right_frame(bytes.subspan(taken), share_.pool.response(request.number));
    if (size == 0) break;
    taken += size;
  }
  const std::uint64_t count = completed_ - first;
  if (count == 0) return false;
  received_.consume(taken);
  told_why_ = false;
  share_.in_flight -= count;
  take_equal(sent, count);
  return true;
}

/// These two complete the oldest request in flight. They return whether to read on.
bool LoadConnection::complete_right(const Pending& request, std::size_t size) {
  received_.consume(size);
  told_why_ = false;
  ++completed_;
  --share_.in_flight;
  return take_right(request, completed_ - 1);
}

bool LoadConnection::complete_wrong(const Pending& request, const FrameCheck& verdict) {
  log(request, verdict.error);
  told_why_ = true;
  ++completed_;
  --share_.in_flight;
  count_answer();
  if (verdict.state == FrameCheck::State::refused) {
    share_.interval->rx_error_bytes += verdict.size - protocol::kFrameHeaderSize;
  }
  const auto what = [&] {
    return describe_fault(received_.bytes(), share_.pool.response(request.number));
  };
  if (!count_error(verdict.error, 1, completed_ - 1, what)) return false;
  received_.consume(verdict.size);
  // Bytes after an invalid frame cannot be interpreted.
  if (verdict.size == 0) lose(ErrorKind::closed, [] { return std::string(); });
  return verdict.size != 0;
}

/// Something came though nothing is due: a refusal of this client, or nonsense.
void LoadConnection::take_unasked() {
  const FrameCheck verdict = judge(received_.bytes(), {});
  if (verdict.state == FrameCheck::State::incomplete) return;
  if (verdict.state != FrameCheck::State::refused) {
    return lose(ErrorKind::bad_frame, [] { return "the server sent data without a request"; });
  }
  told_why_ = true;
  share_.interval->rx_error_bytes += verdict.size;  // with a header that no answer accounts for
  count_error(verdict.error, 1, completed_, [&] { return describe_fault(received_.bytes(), {}); });
  received_.consume(verdict.size);
}

// ---- How a LoadConnection handles errors and connects again

/// The connection is of no use any more, and what is in flight on it will have no response.
void LoadConnection::lose(ErrorKind kind, const Describe& what) {
  // No fault after a stop: the server may have been stopped too.
  if (share_.control.stopping()) return end();
  const std::uint64_t lost = in_flight();
  if ((lost != 0 || !told_why_) &&
      !count_error(kind, std::max<std::uint64_t>(lost, 1), completed_, what)) {
    return;
  }
  now_ = Clock::now();
  share_.account_in_flight(now_);
  share_.in_flight -= lost;
  while (completed_ != sent_) log(pending(completed_++), kind);
  close();
  if (sent_ >= request_limit_) return end();
  give_up_at_ = now_ + share_.plan.connect_timeout;
  retry_later(now_);
}

void LoadConnection::lose_connection(ErrorKind kind, const std::string& what) {
  lose(kind, [&] {
    const std::string sending = send_error_.empty() ? "" : ", sending failed (" + send_error_ + ")";
    const bool never = received_.consumed() == 0 && received_.bytes().empty();
    return fmt::format("{}{}; {} requests unanswered{}", what, sending, in_flight(),
                       never ? ", and it never sent anything: is this the port for clients?" : "");
  });
}

void LoadConnection::log_unanswered() {
  now_ = Clock::now();
  for (std::uint64_t i = completed_; i != sent_; ++i) log(pending(i), ErrorKind::unanswered);
}

void LoadConnection::close() noexcept {
  if (!stream_.valid()) return;
  leave_ready();
  share_.engine.unwatch(stream_.fd(), *this);
  watches_for_room_ = false;
  stream_.close_notify();
  stream_.close();
  received_.clear();
  pieces_.clear();
  next_piece_ = 0;
  send_error_.clear();
}

TimePoint LoadConnection::deadline() const noexcept {
  if (attempt_) return attempt_begin_ + kAttemptTime;
  if (!stream_.valid()) return retry_at_;
  return in_flight() == 0 ? TimePoint::max() : last_sign_ + share_.plan.response_timeout;
}

void LoadConnection::on_deadline(TimePoint now) {
  if (attempt_) return fail_connecting(ErrorKind::time_out, attempt_->describe(ETIMEDOUT), now);
  if (!stream_.valid()) return connect(now);
  lose(ErrorKind::time_out, [&] {
    return fmt::format("no response for {:.3f} s; {} requests unanswered, this one for {:.3f} s",
                       core::to_seconds(now - last_sign_), in_flight(),
                       core::to_seconds(now - pending(completed_).sent));
  });
}

void LoadConnection::connect(TimePoint now) {
  const auto& address = share_.target.addresses[address_ % share_.target.addresses.size()];
  try {
    attempt_.emplace(address, share_.target.tls ? &*share_.target.tls : nullptr);
    share_.engine.watch(attempt_->fd(), attempt_->events(), *this);
  } catch (const core::Error& error) {
    attempt_.reset();
    return count_failed_attempt(kind_of_errno(error.system_errno()), error.what(), now);
  }
  attempt_begin_ = now;
  share_.next_check = std::min(share_.next_check, deadline());
}

void LoadConnection::continue_connecting() {
  const auto state = attempt_->advance();
  const TimePoint now = Clock::now();
  switch (state) {
    case net::ConnectAttempt::State::pending:
      share_.engine.rewatch(attempt_->fd(), attempt_->events(), *this);
      return;
    case net::ConnectAttempt::State::failed:
      return fail_connecting(kind_of_errno(attempt_->error()), attempt_->reason(), now);
    case net::ConnectAttempt::State::connected: break;
  }
  share_.interval->connect.record(now - attempt_begin_);
  share_.engine.unwatch(attempt_->fd(), *this);
  net::Stream stream = attempt_->take();
  attempt_.reset();
  pause_ = kFirstPause;
  use(std::move(stream));
  go_on();
}

void LoadConnection::fail_connecting(ErrorKind kind, std::string reason, TimePoint now) {
  share_.engine.unwatch(attempt_->fd(), *this);
  attempt_.reset();
  count_failed_attempt(kind, std::move(reason), now);
}

void LoadConnection::count_failed_attempt(ErrorKind kind, std::string reason, TimePoint now) {
  if (share_.control.stopping()) return end();
  ++address_;
  if (!count_error(kind, 1, sent_, [&] { return std::move(reason); })) return;
  if (now < give_up_at_) return retry_later(now);
  share_.interval->errors.add(ErrorKind::never_connected);
  end();
}

void LoadConnection::retry_later(TimePoint now) {
  retry_at_ = now + pause_;
  pause_ = std::min(pause_ * 2, kLongestPause);
  share_.next_check = std::min(share_.next_check, retry_at_);
}

/// Begins with a connection that is there.
void LoadConnection::use(net::Stream stream) {
  stream_ = std::move(stream);
  share_.engine.watch(stream_.fd(), EPOLLIN, *this);
  told_why_ = false;
  if (share_.plan.reconnect_every != 0) connection_limit_ = sent_ + share_.plan.reconnect_every;
}

}  // namespace offload::client
