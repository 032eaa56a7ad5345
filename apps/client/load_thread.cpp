#include "apps/client/load_thread.hpp"

#include <poll.h>
#include <spdlog/fmt/fmt.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <limits>

#include "apps/client/checker.hpp"
#include "apps/client/poll_timeout.hpp"
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
      random_(number) {}

void LoadThread::run() {
  now_ = Clock::now();
  if (plan_.duration) end_ = now_ + *plan_.duration;
  while (!finished()) {
    if (!drain_end_ && control_.stopping()) begin_drain();
    const bool was_idle = in_flight() == 0;
    send_requests();
    if (in_flight() == 0) continue;
    // No answer can be there yet to what was just sent into silence: spares a recv().
    if (was_idle || !receive_responses()) wait();
  }
}

bool LoadThread::finished() const noexcept {
  if (!result_.fault.empty()) return true;
  if (drain_end_ && now_ >= *drain_end_) return true;
  return result_.sent >= request_limit_ && in_flight() == 0;
}

void LoadThread::begin_drain() {
  now_ = Clock::now();
  drain_end_ = now_ + kDrainTime;
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
    std::uint32_t count = next_batch();
    if (count == 0) return;
    now_ = Clock::now();
    if (plan_.duration && now_ >= end_) return stop_sending();
    start_batch(count);
  }
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

/// Reads once and checks what is complete; whether there was anything, the end included.
bool LoadThread::receive_responses() {
  const auto room = received_.room();
  const ssize_t count = ::recv(socket_.get(), room.data(), room.size(), 0);
  if (count < 0) {
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return false;
    fail_connection("the connection failed (" + core::describe_errno(errno) + ")");
    return true;
  }
  if (count == 0) {
    fail_connection("the server closed the connection");
    return true;
  }
  now_ = Clock::now();
  last_sign_ = now_;
  received_.append(static_cast<std::size_t>(count));
  result_.rx_bytes += static_cast<std::uint64_t>(count);
  check_responses();
  progress_.store(result_.valid, std::memory_order_relaxed);
  return true;
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

/// Sleeps until there is something to do: at the longest until a time-out.
void LoadThread::wait() {
  now_ = Clock::now();
  auto until = last_sign_ + plan_.response_timeout;
  if (!drain_end_ && now_ >= until) {
    return fail(
        fmt::format("no response for {:.3f} s; {} requests unanswered, this one for {:.3f} s",
                    core::to_seconds(now_ - last_sign_), in_flight(),
                    core::to_seconds(now_ - pending(result_.answered).sent)));
  }
  if (drain_end_) until = *drain_end_;
  const auto events = static_cast<short>(unsent_.empty() ? POLLIN : POLLIN | POLLOUT);
  std::array<pollfd, 2> watched{{{socket_.get(), events, 0}, {control_.stop_fd(), POLLIN, 0}}};
  const nfds_t count = drain_end_ ? 1 : 2;  // after a stop its descriptor stays readable
  // Whatever ended it, the time included, is found out by the next round.
  (void)::poll(watched.data(), count, poll_timeout(until - now_));
}

/// Names the request that was due: the oldest in flight.
void LoadThread::fail(const std::string& what) {
  result_.fault = fmt::format("thread {}, request {}: {}", number_, result_.answered, what);
}

void LoadThread::fail_connection(const std::string& what) {
  // After a stop nothing is owed any more: a server that was stopped as well may close.
  if (control_.stopping()) {
    drain_end_ = now_;
    return;
  }
  const std::string sending =
      send_error_ == 0 ? "" : ", sending failed (" + core::describe_errno(send_error_) + ")";
  fail(fmt::format("{}{}; {} requests unanswered", what, sending, in_flight()));
}

}  // namespace offload::client
