#include "apps/client/load_thread.hpp"

#include <spdlog/fmt/fmt.h>
#include <sys/socket.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <limits>

#include "apps/client/checker.hpp"
#include "core/error.hpp"

namespace offload::client {
namespace {

using core::Clock;

/// What is still due after a stop gets this long.
constexpr core::Duration kDrainTime = std::chrono::seconds(1);

/// One system call's worth: large enough that its cost does not count.
constexpr std::size_t kReadSize = std::size_t{256} << 10;

/// A batch is one reading of the clock: a longer one would blur the latencies.
constexpr std::size_t kBatchBytes = std::size_t{256} << 10;

std::uint32_t batch_length(const RequestPool& pool) {
  const std::size_t fitting = kBatchBytes / pool.request_frame_size();
  return static_cast<std::uint32_t>(std::clamp<std::size_t>(fitting, 1, pool.count()));
}

}  // namespace

LoadThread::LoadThread(std::uint32_t number, core::Fd socket, const LoadPlan& plan,
                       const RequestPool& pool, const RunControl& control)
    : number_(number),
      socket_(std::move(socket)),
      plan_(plan),
      pool_(pool),
      control_(control),
      longest_batch_(batch_length(pool)),
      pending_(std::bit_ceil(plan.max_in_flight)),
      pending_mask_(pending_.size() - 1),
      cache_(kReadSize + protocol::kFrameHeaderSize +
                 std::max(pool.response_length(), kMaxErrorLength),
             1),
      received_(cache_),
      request_limit_(plan.duration ? std::numeric_limits<std::uint64_t>::max() : plan.requests),
      random_(number) {
  engine_.watch(socket_.get(), EPOLLIN, *this);
  // Edge-triggered: after a stop it stays readable, for the other threads.
  engine_.watch(control_.stop_fd(), EPOLLIN | EPOLLET, stop_bell_);
}

void LoadThread::run() {
  now_ = Clock::now();
  if (plan_.duration) end_ = now_ + *plan_.duration;
  send_requests();
  while (!finished()) {
    if (!drain_end_ && control_.stopping()) begin_drain();
    engine_.run_once(deadline());
    check_deadline();
  }
}

void LoadThread::on_events(std::uint32_t epoll_events) {
  if (finished()) return;
  if ((epoll_events & ~std::uint32_t{EPOLLOUT}) != 0) receive_responses();
  if (!finished()) send_requests();
}

bool LoadThread::finished() const noexcept {
  if (!result_.fault.empty() || gave_up_) return true;
  return result_.sent >= request_limit_ && in_flight() == 0;
}

void LoadThread::begin_drain() {
  drain_end_ = Clock::now() + kDrainTime;
  stop_sending();
}

void LoadThread::stop_sending() noexcept {
  request_limit_ = result_.sent;
}

/// How many requests may be sent now.
std::uint32_t LoadThread::next_batch() const noexcept {
  const std::uint64_t window = plan_.max_in_flight - in_flight();
  const std::uint64_t left = request_limit_ - result_.sent;
  return static_cast<std::uint32_t>(std::min({window, left, std::uint64_t{longest_batch_}}));
}

/// Sends until the window is full or the socket takes no more.
void LoadThread::send_requests() {
  while (flush()) {
    const std::uint32_t count = next_batch();
    if (count == 0) break;
    now_ = Clock::now();
    if (plan_.duration && now_ >= end_) {
      stop_sending();
      break;
    }
    start_batch(count);
  }
  watch_for_room(!unsent_.empty());
}

/// A run of neighbours from a random place: the order cannot be foreseen, yet nothing is copied.
void LoadThread::start_batch(std::uint32_t count) {
  random_ = random_ * 6364136223846793005U + 1442695040888963407U;  // Knuth's MMIX generator
  const auto first = static_cast<std::uint32_t>((random_ >> 33) % (pool_.count() - count + 1));
  if (in_flight() == 0) last_sign_ = now_;
  for (std::uint32_t i = 0; i < count; ++i) pending(result_.sent++) = {now_, first + i};
  unsent_ = pool_.frames(first, count);
}

/// Hands what is unsent to the kernel; whether it took all of it.
bool LoadThread::flush() {
  while (!unsent_.empty()) {
    const ssize_t count = ::send(socket_.get(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL);
    if (count < 0) {
      if (errno == EAGAIN || errno == EWOULDBLOCK) return false;
      if (errno == EINTR) continue;
      // Not the end: what the server said before it closed is still to be read.
      send_error_ = errno;
      unsent_ = {};
      stop_sending();
      return false;
    }
    unsent_ = unsent_.subspan(static_cast<std::size_t>(count));
    result_.tx_bytes += static_cast<std::uint64_t>(count);
  }
  return true;
}

/// Only while something is unsent: a socket nearly always has room.
void LoadThread::watch_for_room(bool wanted) {
  if (wanted == watches_for_room_) return;
  engine_.rewatch(socket_.get(), wanted ? EPOLLIN | EPOLLOUT : EPOLLIN, *this);
  watches_for_room_ = wanted;
}

/// Reads once and checks what is complete.
void LoadThread::receive_responses() {
  const auto room = received_.room();
  const ssize_t count = ::recv(socket_.get(), room.data(), room.size(), 0);
  if (count < 0) {
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return;
    return fail_connection("the connection failed (" + core::describe_errno(errno) + ")");
  }
  if (count == 0) return fail_connection("the server closed the connection");
  now_ = Clock::now();
  last_sign_ = now_;
  received_.append(static_cast<std::size_t>(count));
  result_.rx_bytes += static_cast<std::uint64_t>(count);
  check_responses();
  progress_.store(result_.valid, std::memory_order_relaxed);
}

void LoadThread::check_responses() {
  while (!received_.bytes().empty()) {
    if (in_flight() == 0) return fail("the server sent more than was asked for");
    const Pending& request = pending(result_.answered);
    const auto expected = pool_.response(request.number);
    const Verdict verdict = judge(received_.bytes(), expected);
    if (verdict.state == Verdict::State::incomplete) return;
    if (verdict.state == Verdict::State::wrong) {
      fail(describe_fault(received_.bytes(), expected));
      ++result_.answered;
      return;
    }
    received_.consume(verdict.size);
    result_.latency.record(now_ - request.sent);
    result_.last_response = now_;
    ++result_.answered;
    ++result_.valid;
  }
}

/// When waiting is over: for the next sign of life, or after a stop for what is due.
core::TimePoint LoadThread::deadline() const noexcept {
  return drain_end_ ? *drain_end_ : last_sign_ + plan_.response_timeout;
}

/// As of the begin of the engine's turn: what came until then has been taken.
void LoadThread::check_deadline() {
  const auto now = engine_.now();
  if (now < deadline() || finished()) return;
  if (drain_end_) {
    gave_up_ = true;
    return;
  }
  fail(fmt::format("no response for {:.3f} s; {} requests unanswered, this one for {:.3f} s",
                   core::to_seconds(now - last_sign_), in_flight(),
                   core::to_seconds(now - pending(result_.answered).sent)));
}

/// Names the request that was due: the oldest in flight.
void LoadThread::fail(const std::string& what) {
  result_.fault = fmt::format("thread {}, request {}: {}", number_, result_.answered, what);
}

void LoadThread::fail_connection(const std::string& what) {
  // After a stop nothing is owed any more: a server that was stopped as well may close.
  if (control_.stopping()) {
    gave_up_ = true;
    return;
  }
  const std::string sending =
      send_error_ == 0 ? "" : ", sending failed (" + core::describe_errno(send_error_) + ")";
  fail(fmt::format("{}{}; {} requests unanswered", what, sending, in_flight()));
}

}  // namespace offload::client
