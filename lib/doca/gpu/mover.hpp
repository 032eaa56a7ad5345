#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "doca/gpu/gpu.hpp"

namespace offload::doca {

/// Shared memory for the copies of one turn of the mover. Its thread only.
class GpuStaging {
 public:
  explicit GpuStaging(doca_gpu& gpu) : piece_(gpu.allocate(kSize, 1, true)) {}

  void clear() noexcept { used_ = 0; }
  [[nodiscard]] bool is_used() const noexcept { return used_ != 0; }
  /// Takes up to `most` bytes; none if all are taken.
  std::span<std::byte> take(std::size_t most) noexcept;
  /// Returns the last `count` of the bytes that were taken last.
  void give_back(std::size_t count) noexcept { used_ -= count; }

 private:
  static constexpr std::size_t kSize = std::size_t{4} * 1024 * 1024;

  doca_gpu::Piece piece_;
  std::size_t used_ = 0;
};

/// A consumer or producer whose messages the mover moves.
class GpuQueue {
 public:
  // The mover's thread. Each turn calls both, and waits for the copies between them.

  /// Reads what the kernel and the peer have written, and begins copies. Returns whether there was
  /// work. Does not throw.
  virtual bool gather(GpuStaging& staging) noexcept = 0;
  /// Passes on what was copied. The same.
  virtual bool pass_on() noexcept = 0;
  /// The copies have failed.
  virtual void fail(const char* why) noexcept = 0;

 protected:
  ~GpuQueue() = default;
};

/// The thread that moves messages between kernels of a GPU and the streams to peers: a program need
/// not give turns to its progress engine while a kernel runs, and a kernel cannot wake a thread.
/// It polls while it has queues: without a pause while there is work, and with short pauses
/// after some milliseconds without.
class GpuMover {
 public:
  explicit GpuMover(doca_gpu& gpu);
  GpuMover& operator=(GpuMover&&) = delete;
  ~GpuMover();

  // Any thread.

  void add(GpuQueue& queue);
  /// No call of the queue is under way on return.
  void remove(GpuQueue& queue) noexcept;

 private:
  void run();
  bool turn();
  void pause(bool has_worked);

  doca_gpu& gpu_;
  GpuStaging staging_;
  std::atomic<int> waiting_{0};  ///< callers for which the thread makes way
  std::mutex mutex_;             ///< of the members below
  std::condition_variable changed_;
  std::vector<GpuQueue*> queues_;
  bool is_ending_ = false;
  int idle_turns_ = 0;  ///< of the thread only
  std::thread thread_;
};

}  // namespace offload::doca
