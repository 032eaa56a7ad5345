#include "clients/cpp/src/client.hpp"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

#include "clients/cpp/src/quiet_pipe.hpp"

namespace offload::clients {
namespace {

/// Frames of one system call.
constexpr std::size_t kMostPieces = 64;

core::TimePoint after(core::TimePoint now, core::Duration time) noexcept {
  return time < core::TimePoint::max() - now ? now + time : core::TimePoint::max();
}

}  // namespace

Client::Client(Settings settings)
    : settings_(std::move(settings)),
      exchange_(settings_.limits),
      dialer_(watch_, net::resolve(settings_.host, settings_.port), settings_.tls) {}

Client::~Client() {
  const QuietPipe quiet(settings_.tls.has_value());
  if (is_owner_ && stream_.valid()) hang_up();
}

/// Ends the connection, also while a forked process has a copy of the descriptor.
void Client::hang_up() noexcept {
  stream_.close_notify();
  ::shutdown(stream_.fd(), SHUT_RDWR);
}

int Client::connect() {
  const QuietPipe quiet(settings_.tls.has_value());
  core::TimePoint now = core::Clock::now();
  dialer_.start(now, after(now, settings_.connect_timeout), false);
  while (dialer_.advance(now) == Dialer::State::dialing) {
    watch_.sleep(dialer_.next_time(), now);
    now = core::Clock::now();
  }
  if (dialer_.state() == Dialer::State::connected) {
    start(dialer_.take());
    return OFFLOAD_OK;
  }
  reason_ = dialer_.reason();
  dialer_.stop();
  is_lost_ = true;
  return OFFLOAD_CONNECT_FAILED;
}

int Client::submit(const offload_client_request& request) {
  if (is_lost_) return OFFLOAD_LOST;
  if (exchange_.is_full()) {
    reason_ = "too many requests, or bytes of them, are in flight";
    return OFFLOAD_FULL;
  }
  const core::Duration timeout = request.timeout == 0  ? settings_.timeout
                                 : request.timeout < 0 ? core::Duration::max()
                                                       : std::chrono::milliseconds(request.timeout);
  exchange_.submit({static_cast<const std::byte*>(request.data), request.size}, request.tag,
                   after(core::Clock::now(), timeout), (request.flags & OFFLOAD_IDEMPOTENT) != 0);
  return OFFLOAD_OK;
}

int Client::wait(core::Duration timeout, Outcome& outcome) {
  const QuietPipe quiet(settings_.tls.has_value());
  const core::TimePoint until = after(core::Clock::now(), timeout);
  while (!take(outcome)) {
    const core::TimePoint now = core::Clock::now();
    const bool moved = transfer(now);
    // A response that has arrived counts, also if it is late.
    if (moved && take(outcome)) break;
    if (exchange_.expire(now) || moved) continue;
    prepare_sleep(now);
    if (exchange_.is_idle()) return OFFLOAD_IDLE;
    if (now >= until) return OFFLOAD_NOTHING;
    watch_.sleep(until, now);
  }
  return OFFLOAD_OK;
}

bool Client::take(Outcome& outcome) {
  auto next = exchange_.next();
  if (next) outcome = *std::move(next);
  return next.has_value();
}

/// Sends and receives what is possible. Returns whether that was anything.
bool Client::transfer(core::TimePoint now) {
  if (!stream_.valid()) return !is_lost_ && dial(now);
  if (const auto& ending = exchange_.ending()) {
    lose(ending->status, ending->text, ending->may_retry);
    return true;
  }
  const bool sent = send();
  return receive() || sent;
}

/// Connects again, once there is a request for it.
bool Client::dial(core::TimePoint now) {
  if (dialer_.state() == Dialer::State::idle) {
    if (!exchange_.has_unsent()) return false;
    if (!give_up_at_) give_up_at_ = after(now, settings_.reconnect_timeout);
    dialer_.start(now, *give_up_at_, true);
  }
  const Dialer::State state = dialer_.advance(now);
  if (state == Dialer::State::dialing) return false;
  if (state == Dialer::State::connected) {
    start(dialer_.take());
    return true;
  }
  reason_ = "cannot reconnect in time: " + dialer_.reason();
  exchange_.lose(OFFLOAD_CONNECT_FAILED, reason_, false);
  dialer_.stop();
  give_up_at_.reset();
  return true;
}

void Client::start(net::Stream stream) {
  stream_ = std::move(stream);
  stream_.keep_receiving();
  sending_failed_ = is_blocked_ = false;
  watch_.watch(stream_.fd(), EPOLLIN);
}

bool Client::send() {
  if (sending_failed_ || !exchange_.has_unsent()) return false;
  std::array<iovec, kMostPieces> pieces;
  const std::size_t count = exchange_.gather(pieces);
  const ssize_t sent = stream_.send(std::span(pieces).first(count));
  is_blocked_ = sent < 0 && (errno == EAGAIN || errno == EINTR);
  if (sent >= 0) {
    exchange_.add_sent(static_cast<std::size_t>(sent));
    return sent != 0;
  }
  if (is_blocked_) return false;
  // The server's last message, which says why, is received first.
  reason_ = "sending failed: " + stream_.describe_error(errno);
  sending_failed_ = true;
  return true;
}

bool Client::receive() {
  const ssize_t received = stream_.receive(exchange_.room());
  if (received > 0) {
    exchange_.add_received(static_cast<std::size_t>(received));
    return true;
  }
  const int errnum = errno;
  if (received == 0) {
    lose(OFFLOAD_LOST,
         exchange_.is_inside_frame() ? "the server closed the connection inside a frame"
                                     : "the server closed the connection",
         true);
  } else if (errnum != EAGAIN && errnum != EINTR) {
    lose(OFFLOAD_LOST, "the connection failed: " + stream_.describe_error(errnum), true);
  } else if (sending_failed_) {
    lose(OFFLOAD_LOST, reason_, true);
  } else {
    return false;
  }
  return true;
}

void Client::lose(int status, std::string text, bool may_retry) {
  const bool retry = may_retry && settings_.reconnect_timeout != core::Duration::zero();
  reason_ = std::move(text);
  const bool answered = exchange_.was_answered();
  exchange_.lose(status, reason_, retry);
  if (answered) dialer_.reset_pause();
  if (answered || !exchange_.has_unsent()) give_up_at_.reset();
  watch_.watch(-1);
  hang_up();
  stream_.close();
  is_lost_ = !retry;
}

/// Lets the descriptor be readable when transfer() or expire() has work.
void Client::prepare_sleep(core::TimePoint now) {
  if (stream_.valid()) {
    const bool wants_write = is_blocked_ || stream_.wants_write();
    watch_.watch(stream_.fd(), wants_write ? EPOLLIN | EPOLLOUT : EPOLLIN);
  }
  watch_.wake_at(std::min(exchange_.next_expiry(), dialer_.next_time()), now);
}

}  // namespace offload::clients
