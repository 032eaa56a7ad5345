#include "apps/client/load_connection.hpp"

#include <fmt/core.h>
#include <sys/socket.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <limits>
#include <utility>

#include "apps/client/checker.hpp"
#include "core/error.hpp"

namespace offload::client {

using core::Clock;

LoadConnection::LoadConnection(std::string name, std::uint32_t number, net::Stream stream,
                               LoadShare& share)
    : share_(share),
      stream_(std::move(stream)),
      pending_(std::bit_ceil(share.plan.max_in_flight)),
      pending_mask_(pending_.size() - 1),
      received_(share.cache, share.receive_size),
      request_limit_(share.plan.duration ? std::numeric_limits<std::uint64_t>::max()
                                         : share.plan.requests),
      random_(number),
      name_(std::move(name)) {
  share_.engine.watch(stream_.fd(), EPOLLIN, *this);
  ++share_.running;
}

void LoadConnection::start() {
  send_requests();
  end_if_done();
}

void LoadConnection::on_events(std::uint32_t epoll_events) {
  if (over_) return;
  if ((epoll_events & ~std::uint32_t{EPOLLOUT}) != 0) {
    while (receive_responses()) continue;
  }
  if (!over_) send_requests();
  end_if_done();
}

void LoadConnection::stop_sending() noexcept {
  request_limit_ = sent_;
  end_if_done();
}

void LoadConnection::end_if_done() noexcept {
  if (sent_ >= request_limit_ && in_flight() == 0) end();
}

void LoadConnection::end() noexcept {
  if (std::exchange(over_, true)) return;
  share_.engine.unwatch(stream_.fd(), *this);  // the server may close it before the run is over
  --share_.running;
}

/// The number of requests that may be sent now.
std::uint32_t LoadConnection::next_batch() const noexcept {
  const std::uint64_t window = share_.plan.max_in_flight - in_flight();
  const std::uint64_t left = request_limit_ - sent_;
  return static_cast<std::uint32_t>(std::min({window, left, std::uint64_t{share_.longest_batch}}));
}

/// Sends until the window is full or the socket accepts no more.
void LoadConnection::send_requests() {
  while (flush()) {
    const std::uint32_t count = next_batch();
    if (count == 0) break;
    now_ = Clock::now();
    if (share_.plan.duration && now_ >= share_.end) {
      stop_sending();
      break;
    }
    start_batch(count);
  }
  if (!over_) watch_for_room(!unsent_.empty());
}

/// Chooses consecutive requests from a random number on, so that the server cannot predict them and
/// they can be sent from the pool without a copy.
void LoadConnection::start_batch(std::uint32_t count) {
  random_ = random_ * 6364136223846793005U + 1442695040888963407U;  // Knuth's MMIX generator
  const auto first =
      static_cast<std::uint32_t>((random_ >> 33) % (share_.pool.count() - count + 1));
  if (in_flight() == 0) last_sign_ = now_;
  for (std::uint32_t i = 0; i < count; ++i) pending(sent_++) = {now_, first + i};
  share_.result.sent += count;
  unsent_ = share_.pool.frames(first, count);
}

/// Sends what is unsent. Returns whether the socket accepted all of it.
bool LoadConnection::flush() {
  while (!unsent_.empty()) {
    const ssize_t count = stream_.send(unsent_);
    if (count < 0) {
      if (errno == EAGAIN || errno == EWOULDBLOCK) return false;
      if (errno == EINTR) continue;
      // Does not end the connection: an error frame that the server sent may still be unread.
      send_error_ = stream_.describe_error(errno);
      unsent_ = {};
      stop_sending();
      return false;
    }
    unsent_ = unsent_.subspan(static_cast<std::size_t>(count));
    share_.result.tx_bytes += static_cast<std::uint64_t>(count);
  }
  return true;
}

/// Watches EPOLLOUT only while bytes are unsent, as a socket nearly always has room.
void LoadConnection::watch_for_room(bool wanted) {
  if (wanted == watches_for_room_) return;
  share_.engine.rewatch(stream_.fd(), wanted ? EPOLLIN | EPOLLOUT : EPOLLIN, *this);
  watches_for_room_ = wanted;
}

/// Reads once and checks the complete responses. Returns whether to read again, as epoll does not
/// tell of what is left.
bool LoadConnection::receive_responses() {
  const auto room = received_.room(0);
  if (room.empty()) {
    fail_connection("there is no memory for responses");
    return false;
  }
  const ssize_t count = stream_.receive(room);
  if (count < 0) {
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return false;
    fail_connection("the connection failed (" + stream_.describe_error(errno) + ")");
    return false;
  }
  if (count == 0) {
    fail_connection("the server closed the connection");
    return false;
  }
  now_ = Clock::now();
  last_sign_ = now_;
  received_.append(static_cast<std::size_t>(count));
  share_.result.rx_bytes += static_cast<std::uint64_t>(count);
  check_responses();
  received_.settle(0);
  return stream_.has_pending() && !over_;
}

void LoadConnection::check_responses() {
  while (!received_.bytes().empty()) {
    if (in_flight() == 0) return fail("the server sent more than was asked for");
    const Pending& request = pending(answered_);
    const auto expected = share_.pool.response(request.number);
    const Verdict verdict = judge(received_.bytes(), expected);
    if (verdict.state == Verdict::State::incomplete) return;
    if (verdict.state == Verdict::State::wrong) {
      fail(describe_fault(received_.bytes(), expected));
      ++answered_;
      ++share_.result.answered;
      return;
    }
    received_.consume(verdict.size);
    share_.result.latency.record(now_ - request.sent);
    share_.result.last_response = now_;
    ++answered_;
    ++share_.result.answered;
    ++share_.result.valid;
  }
}

void LoadConnection::fail_silent(core::TimePoint now) {
  fail(fmt::format("no response for {:.3f} s; {} requests unanswered, this one for {:.3f} s",
                   core::to_seconds(now - last_sign_), in_flight(),
                   core::to_seconds(now - pending(answered_).sent)));
}

/// Ends the connection with a fault that names the oldest request in flight.
void LoadConnection::fail(const std::string& what) {
  if (share_.result.fault.empty()) {
    share_.result.fault = fmt::format("{}, request {}: {}", name_, answered_, what);
  }
  end();
}

void LoadConnection::fail_connection(const std::string& what) {
  // No fault after a stop: the server may have been stopped too.
  if (share_.control.stopping()) return end();
  const std::string sending = send_error_.empty() ? "" : ", sending failed (" + send_error_ + ")";
  fail(fmt::format("{}{}; {} requests unanswered", what, sending, in_flight()));
}

}  // namespace offload::client
