#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "apps/rdma_tasks/device/lane.hpp"
#include "memory/range.hpp"

namespace offload::rdma_tool {

/// Runs lanes: on a GPU, a warp each, or without one on threads of a CPU. One launch at a time; one
/// thread.
class LaneLauncher {
 public:
  LaneLauncher& operator=(LaneLauncher&&) = delete;
  /// Joins.
  virtual ~LaneLauncher() = default;

  /// For log and report: "a kernel on gpu:0 ...", "device functions on CPU threads".
  [[nodiscard]] virtual std::string name() const = 0;

  /// Zeroed memory of the host that lanes, this process and network cards reach at one address.
  /// Throws Error.
  [[nodiscard]] virtual memory::Range allocate(std::size_t bytes) = 0;
  /// Zeroed memory for lanes alone, whose atomics work there. Throws Error.
  [[nodiscard]] virtual std::shared_ptr<void> allocate_own(std::size_t bytes) = 0;

  /// Returns a function that maps a register of a card for the lanes: it takes the address of this
  /// process, returns that of the lanes, and throws Error if there is none. The mapping lives as
  /// long as this. Empty if the lanes are threads of this process.
  [[nodiscard]] virtual std::function<void*(void*)> register_mapper() { return {}; }
  /// Allocates memory of the GPU, with its dma-buf where the driver exports one. Throws Error:
  /// not_found, with the reason, if the lanes are threads.
  [[nodiscard]] virtual memory::Range allocate_on_gpu(std::size_t bytes) = 0;

  /// Starts all of them; `runs`, in memory of allocate(), stay until join(). Throws Error.
  virtual void start(std::span<LaneRun> runs) = 0;
  /// Returns whether all have exited. Throws Error (driver) if they ended otherwise.
  [[nodiscard]] virtual bool finished() = 0;
  /// Waits until all have exited: as long as their waits' limits allow.
  virtual void join() noexcept = 0;
};

std::unique_ptr<LaneLauncher> make_cpu_launcher();
/// `gpu`: as device::find() takes it; empty for the first. Throws Error: not_found where there is
/// none, not_supported where the build has no CUDA.
std::unique_ptr<LaneLauncher> make_gpu_launcher(const std::string& gpu);
/// The name of no GPU.
inline constexpr const char* kNoGpu = "none";
/// The GPU's, or else the CPU's, also for kNoGpu; the log says which, and why. Throws Error if a
/// GPU is named and cannot be used.
std::unique_ptr<LaneLauncher> make_launcher(const std::string& gpu = {});

/// Ends a launch, however its scope is left: tells the lanes to stop, and joins them. No wait of a
/// lane is longer than its look at the stop word.
class LaunchEnd {
 public:
  LaunchEnd(LaneLauncher& launcher, std::uint32_t& stop) : launcher_(launcher), stop_(stop) {}
  LaunchEnd& operator=(LaunchEnd&&) = delete;
  ~LaunchEnd() {
    __atomic_store_n(&stop_, 1, __ATOMIC_RELAXED);  // it says nothing but that
    launcher_.join();
  }

 private:
  LaneLauncher& launcher_;
  std::uint32_t& stop_;
};

/// `count` objects in memory of allocate().
template <class T>
class LaneArray {
 public:
  LaneArray(LaneLauncher& launcher, std::size_t count)
      : range_(launcher.allocate(count * sizeof(T))), count_(count) {
    std::uninitialized_value_construct_n(get(), count);
  }
  [[nodiscard]] T* get() const noexcept { return reinterpret_cast<T*>(range_.address); }
  [[nodiscard]] std::span<T> all() const noexcept { return {get(), count_}; }

 private:
  static_assert(std::is_trivially_destructible_v<T>);
  memory::Range range_;
  std::size_t count_;
};

}  // namespace offload::rdma_tool
