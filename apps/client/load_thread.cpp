#include "apps/client/load_thread.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "apps/client/checker.hpp"

namespace offload::client {
namespace {

using core::Clock;

/// What is still due after a stop gets this long.
constexpr core::Duration kDrainTime = std::chrono::seconds(1);

/// One system call's worth: large enough that its cost does not count.
constexpr std::size_t kReadSize = std::size_t{256} << 10;

/// A batch is one reading of the clock: a longer one would blur the latencies.
constexpr std::size_t kBatchBytes = std::size_t{256} << 10;

std::uint32_t longest_batch(const RequestPool& pool) {
  const std::size_t fitting = kBatchBytes / pool.request_frame_size();
  return static_cast<std::uint32_t>(std::clamp<std::size_t>(fitting, 1, pool.count()));
}

/// Buffers that stay with the thread: a connection borrows one while a response is not whole.
constexpr std::size_t kKeptBuffers = 16;

std::size_t buffer_size(const RequestPool& pool) {
  return kReadSize + protocol::kFrameHeaderSize + std::max(pool.response_length(), kMaxErrorLength);
}

}  // namespace

LoadThread::LoadThread(std::uint32_t number, std::vector<core::Fd> sockets, const LoadPlan& plan,
                       const RequestPool& pool, const RunControl& control)
    : share_{.plan = plan,
             .pool = pool,
             .control = control,
             .longest_batch = longest_batch(pool),
             .engine = progress::Engine(),
             .cache = memory::BlockCache(buffer_size(pool), kKeptBuffers),
             .result = {}} {
  // Edge-triggered: after a stop it stays readable, for the other threads.
  share_.engine.watch(control.stop_fd(), EPOLLIN | EPOLLET, stop_bell_);
  const std::size_t count = sockets.size();
  connections_.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::string name = count == 1 ? fmt::format("thread {}", number)
                                        : fmt::format("thread {}, connection {}", number, i);
    connections_.push_back(std::make_unique<LoadConnection>(
        name, static_cast<std::uint32_t>(number * count + i), std::move(sockets[i]), share_));
  }
}

void LoadThread::run() {
  const auto now = Clock::now();
  if (share_.plan.duration) share_.end = now + *share_.plan.duration;
  silence_check_ = now + share_.plan.response_timeout;
  for (const auto& connection : connections_) connection->start();
  while (!finished()) {
    if (!drain_end_ && share_.control.stopping()) begin_drain();
    share_.engine.run_once(deadline());
    progress_.store(share_.result.valid, std::memory_order_relaxed);
    check_deadline();
  }
}

bool LoadThread::finished() const noexcept {
  return share_.running == 0 || !share_.result.fault.empty() || gave_up_;
}

void LoadThread::begin_drain() {
  drain_end_ = Clock::now() + kDrainTime;
  for (const auto& connection : connections_) connection->stop_sending();
}

/// When waiting is over: for the next sign of life, or after a stop for what is due.
core::TimePoint LoadThread::deadline() const noexcept {
  return drain_end_ ? *drain_end_ : silence_check_;
}

/// As of the begin of the engine's turn: what came until then has been taken.
void LoadThread::check_deadline() {
  const auto now = share_.engine.now();
  if (now < deadline() || finished()) return;
  if (drain_end_) {
    gave_up_ = true;
  } else {
    check_silence(now);
  }
}

/// Deadlines only move on, so the first of them, as of now, says when to look again: responses
/// need not keep the connections in any order.
void LoadThread::check_silence(core::TimePoint now) {
  silence_check_ = core::TimePoint::max();
  for (const auto& connection : connections_) {
    if (connection->over()) continue;
    if (connection->deadline() <= now) return connection->fail_silent(now);
    silence_check_ = std::min(silence_check_, connection->deadline());
  }
}

}  // namespace offload::client
