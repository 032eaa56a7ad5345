#include "apps/client/load_thread.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "apps/client/checker.hpp"

namespace offload::client {
namespace {

using core::Clock;

/// How long outstanding responses are awaited after a stop.
constexpr core::Duration kDrainTime = std::chrono::seconds(1);

/// The size of a receive: large enough that the cost of the system call does not matter.
constexpr std::size_t kReadSize = std::size_t{256} << 10;

/// The longest batch: all its requests have one time stamp, so a longer one would blur the
/// latencies.
constexpr std::size_t kBatchBytes = std::size_t{256} << 10;

std::uint32_t longest_batch(const RequestPool& pool) {
  const std::size_t fitting = kBatchBytes / pool.request_frame_size();
  return static_cast<std::uint32_t>(std::clamp<std::size_t>(fitting, 1, pool.count()));
}

/// Free buffers that a thread keeps: a connection uses one while a response is incomplete.
constexpr std::size_t kKeptBuffers = 16;

std::size_t buffer_size(const RequestPool& pool) {
  return kReadSize + protocol::kFrameHeaderSize + std::max(pool.response_length(), kMaxErrorLength);
}

}  // namespace

LoadThread::LoadThread(std::uint32_t number, std::vector<net::Stream> streams, const LoadPlan& plan,
                       const RequestPool& pool, const RunControl& control)
    : share_{.plan = plan,
             .pool = pool,
             .control = control,
             .longest_batch = longest_batch(pool),
             .engine = progress::Engine(),
             .cache = memory::BlockCache(kKeptBuffers * buffer_size(pool)),
             .receive_size = buffer_size(pool),
             .result = {}} {
  // Edge-triggered, as it stays readable after a stop, for the other threads.
  share_.engine.watch(control.stop_fd(), EPOLLIN | EPOLLET, stop_event_);
  const std::size_t count = streams.size();
  connections_.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::string name = count == 1 ? fmt::format("thread {}", number)
                                        : fmt::format("thread {}, connection {}", number, i);
    connections_.push_back(std::make_unique<LoadConnection>(
        name, static_cast<std::uint32_t>(number * count + i), std::move(streams[i]), share_));
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

/// The time until which it waits for responses.
core::TimePoint LoadThread::deadline() const noexcept {
  return drain_end_ ? *drain_end_ : silence_check_;
}

/// Uses the time at the start of the turn: what arrived before it has been received.
void LoadThread::check_deadline() {
  const auto now = share_.engine.now();
  if (now < deadline() || finished()) return;
  if (drain_end_) {
    gave_up_ = true;
  } else {
    check_silence(now);
  }
}

/// Checks all connections, and sets the next check to their earliest deadline. Deadlines only move
/// later, so connections need not be kept in order.
void LoadThread::check_silence(core::TimePoint now) {
  silence_check_ = core::TimePoint::max();
  for (const auto& connection : connections_) {
    if (connection->over()) continue;
    if (connection->deadline() <= now) return connection->fail_silent(now);
    silence_check_ = std::min(silence_check_, connection->deadline());
  }
}

}  // namespace offload::client
