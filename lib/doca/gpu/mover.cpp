#include "doca/gpu/mover.hpp"

#include <algorithm>
#include <chrono>
#include <exception>

#include "core/error.hpp"
#include "core/log.hpp"
#include "core/process/signals_blocked.hpp"

namespace offload::doca {
namespace {

/// Turns without work in which the thread does not pause, then those in which it yields.
constexpr int kBusyTurns = 2000;
constexpr int kYieldingTurns = 10000;
constexpr auto kMoverPause = std::chrono::microseconds(20);

}  // namespace

std::span<std::byte> GpuStaging::take(std::size_t most) noexcept {
  const std::size_t count = std::min(most, kSize - used_);
  const std::span taken(static_cast<std::byte*>(piece_.cpu) + used_, count);
  used_ += count;
  return taken;
}

GpuMover::GpuMover(doca_gpu& gpu) : gpu_(gpu), staging_(gpu) {
  const core::SignalsBlocked blocked;  // they are for the program's threads
  thread_ = std::thread([this] { run(); });
}

GpuMover::~GpuMover() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void GpuMover::add(GpuQueue& queue) {
  waiting_.fetch_add(1, std::memory_order_relaxed);  // the lock orders the rest
  {
    const std::lock_guard lock(mutex_);
    waiting_.fetch_sub(1, std::memory_order_relaxed);
    queues_.push_back(&queue);
  }
  changed_.notify_one();
}

void GpuMover::remove(GpuQueue& queue) noexcept {
  waiting_.fetch_add(1, std::memory_order_relaxed);  // as in add()
  const std::lock_guard lock(mutex_);
  waiting_.fetch_sub(1, std::memory_order_relaxed);
  std::erase(queues_, &queue);
}

void GpuMover::run() {
  std::unique_lock lock(mutex_);
  try {
    gpu_.select();
  } catch (const core::Error& error) {
    core::log_error("GPU: {}", error.what());  // each copy fails, too
  }
  while (!is_ending_) {
    if (queues_.empty()) {
      changed_.wait(lock, [this] { return is_ending_ || !queues_.empty(); });
      continue;
    }
    const bool has_worked = turn();
    lock.unlock();
    pause(has_worked);
    while (waiting_.load(std::memory_order_relaxed) != 0) std::this_thread::yield();
    lock.lock();
  }
}

bool GpuMover::turn() {
  bool has_worked = false;
  staging_.clear();
  for (GpuQueue* const queue : queues_) has_worked = queue->gather(staging_) || has_worked;
  if (staging_.is_used()) {
    try {
      gpu_.sync();
    } catch (const std::exception& error) {  // also that there is no memory
      for (GpuQueue* const queue : queues_) queue->fail(error.what());
    }
  }
  for (GpuQueue* const queue : queues_) has_worked = queue->pass_on() || has_worked;
  // The last queues may find the staging memory used up.
  std::rotate(queues_.begin(), queues_.begin() + 1, queues_.end());
  return has_worked;
}

void GpuMover::pause(bool has_worked) {
  idle_turns_ = has_worked ? 0 : std::min(idle_turns_ + 1, kYieldingTurns);
  if (idle_turns_ < kBusyTurns) return;
  if (idle_turns_ < kYieldingTurns) {
    std::this_thread::yield();
  } else {
    std::this_thread::sleep_for(kMoverPause);
  }
}

}  // namespace offload::doca
