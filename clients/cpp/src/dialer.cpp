#include "clients/cpp/src/dialer.hpp"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace offload::clients {
namespace {

using std::chrono::milliseconds;

/// Pauses before all addresses are tried again: the first, doubled each time until the longest.
constexpr core::Duration kFirstPause = milliseconds(10);
constexpr core::Duration kLongestPause = milliseconds(500);
/// An attempt among several rounds: an unanswered SYN must not take all the time.
constexpr core::Duration kAttemptTime = std::chrono::seconds(2);

bool is_ready(int fd, std::uint32_t events) noexcept {
  pollfd ready{fd, static_cast<short>((events & EPOLLOUT) != 0 ? POLLOUT : POLLIN), 0};
  return ::poll(&ready, 1, 0) > 0;
}

}  // namespace

void Dialer::start(core::TimePoint now, core::TimePoint until, bool again) {
  state_ = State::dialing;
  again_ = again;
  next_ = 0;
  until_ = until;
  not_before_ = again ? now + pause_ : now;
  pause_ = std::clamp(2 * pause_, kFirstPause, kLongestPause);
  reason_ = "there was no time to connect";
}

Dialer::State Dialer::advance(core::TimePoint now) {
  if (state_ != State::dialing) return state_;
  if (!attempt_) {
    if (now >= until_) return state_ = State::failed;
    if (now < not_before_) return state_;
    begin_attempt(now);
    if (!attempt_) return state_;
  }
  if (is_ready(attempt_->fd(), attempt_->events())) {
    const auto state = attempt_->advance();
    if (state == net::ConnectAttempt::State::connected) return state_ = State::connected;
    if (state == net::ConnectAttempt::State::failed) {
      end_attempt(attempt_->reason(), now);
      return state_;
    }
  }
  if (now >= attempt_until_) {
    end_attempt(attempt_->describe(ETIMEDOUT), now);
  } else {
    watch_.watch(attempt_->fd(), attempt_->events());
  }
  return state_;
}

void Dialer::begin_attempt(core::TimePoint now) {
  const auto left = static_cast<core::Duration::rep>(addresses_.size() - next_);
  attempt_until_ = until_;
  if (until_ != core::TimePoint::max() || again_) {
    const core::Duration share = (until_ - now) / left;
    attempt_until_ = now + (again_ ? std::min(until_ - now, kAttemptTime) : share);
  }
  try {
    attempt_.emplace(addresses_[next_], tls_ ? &*tls_ : nullptr);
  } catch (const core::Error& error) {
    end_attempt(error.what(), now);
  }
}

/// The next address is due, or the next round, or none.
void Dialer::end_attempt(std::string reason, core::TimePoint now) {
  watch_.watch(-1);
  attempt_.reset();
  reason_ = std::move(reason);
  not_before_ = now;
  if (++next_ < addresses_.size()) return;
  next_ = 0;
  if (!again_) {
    state_ = State::failed;
    return;
  }
  not_before_ = now + pause_;
  pause_ = std::min(2 * pause_, kLongestPause);
}

void Dialer::stop() noexcept {
  if (attempt_) watch_.watch(-1);
  attempt_.reset();
  state_ = State::idle;
}

core::TimePoint Dialer::next_time() const noexcept {
  if (state_ != State::dialing) return core::TimePoint::max();
  return attempt_ ? attempt_until_ : std::min(not_before_, until_);
}

net::Stream Dialer::take() noexcept {
  net::Stream stream = attempt_->take();
  attempt_.reset();
  state_ = State::idle;
  return stream;
}

}  // namespace offload::clients
