#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "apps/client/load/load_connection.hpp"
#include "core/error.hpp"

/// How a LoadConnection handles errors and connects again.
namespace offload::client {

using core::Clock;
using core::TimePoint;

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
    return fmt::format("{}{}; {} requests unanswered", what, sending, in_flight());
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
    case ConnectAttempt::State::pending:
      share_.engine.rewatch(attempt_->fd(), attempt_->events(), *this);
      return;
    case ConnectAttempt::State::failed:
      return fail_connecting(kind_of_errno(attempt_->error()), attempt_->reason(), now);
    case ConnectAttempt::State::connected: break;
  }
  share_.interval->connect.record(now - attempt_begin_);
  share_.engine.unwatch(attempt_->fd(), *this);
  net::Stream stream = attempt_->take();
  attempt_.reset();
  pause_ = kFirstPause;
  use(std::move(stream));
  go_on();
}

void LoadConnection::fail_connecting(ErrorKind kind, const std::string& reason, TimePoint now) {
  share_.engine.unwatch(attempt_->fd(), *this);
  attempt_.reset();
  count_failed_attempt(kind, reason, now);
}

void LoadConnection::count_failed_attempt(ErrorKind kind, const std::string& reason,
                                          TimePoint now) {
  if (share_.control.stopping()) return end();
  ++address_;
  if (!count_error(kind, 1, sent_, [&] { return reason; })) return;
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
