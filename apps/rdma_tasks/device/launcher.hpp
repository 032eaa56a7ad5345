#pragma once

#include <cstddef>
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

  /// Starts all of them; `runs`, in memory of allocate(), stay until join(). Throws Error.
  virtual void start(std::span<LaneRun> runs) = 0;
  /// Returns whether all have exited. Throws Error (driver) if they ended otherwise.
  [[nodiscard]] virtual bool finished() = 0;
  /// Waits until all have exited: as long as their waits' limits allow.
  virtual void join() noexcept = 0;
};

std::unique_ptr<LaneLauncher> make_cpu_launcher();
/// On the first GPU. Throws Error: not_found where there is none, not_supported where the build has
/// no CUDA.
std::unique_ptr<LaneLauncher> make_gpu_launcher();
/// The GPU's, or else the CPU's; the log says which, and why.
std::unique_ptr<LaneLauncher> make_launcher();

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
