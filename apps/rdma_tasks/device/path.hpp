#pragma once

#include <memory>
#include <string>

#include "apps/rdma_tasks/device/launcher.hpp"
#include "apps/rdma_tasks/device/rings.hpp"
#include "apps/rdma_tasks/environment.hpp"
#include "apps/rdma_tasks/options.hpp"

namespace offload::rdma_tool {

/// The connection that device functions post to, beside that of an endpoint's control messages: its
/// queues in mlx5's format, and what carries them out, of the kind that --rings chooses. One
/// thread, but for queues(), which belong to the lanes while they run.
class DevicePath {
 public:
  /// Starts the connection; `access`: of the peer to the endpoint's memory. An error of an
  /// emulator's queues ends the run by Environment::fail(). Throws Error.
  DevicePath(Environment& environment, const Options& options, memory::Access access,
             std::string name);
  DevicePath& operator=(DevicePath&&) = delete;

  /// Completion queue entries that it needs.
  static std::uint32_t completions(const Options& options) noexcept;

  [[nodiscard]] rdma::ConnectionDescriptor descriptor() const { return rings_->descriptor(); }
  /// Before connect_to(): where the lanes find their memory. Posts the receives.
  void set_memory(const DeviceMemory& memory);
  /// Entries are carried out from here on.
  void connect_to(const rdma::ConnectionDescriptor& peer,
                  const kernels::rdma::RemotePointer& there);

  [[nodiscard]] const DeviceMemory& memory() const noexcept { return memory_; }
  [[nodiscard]] DeviceQueues& queues() noexcept { return *queues_.get(); }
  /// Begins a run: both ends' counts are zero. Nothing may be under way.
  void clear_words() noexcept;

 private:
  const Options& options_;
  std::unique_ptr<LaneRings> rings_;
  std::shared_ptr<void> shared_state_;
  std::shared_ptr<void> marks_;
  LaneArray<DeviceQueues> queues_;
  DeviceMemory memory_;
};

}  // namespace offload::rdma_tool
