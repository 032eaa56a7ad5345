#pragma once

#include <memory>
#include <string>

#include "apps/rdma/device/launcher.hpp"
#include "apps/rdma/environment.hpp"
#include "apps/rdma/options.hpp"
#include "rdma/emulator/queue_emulator.hpp"
#include "rdma_tasks/connection.hpp"

namespace offload::rdma_tool {

/// The connection that device functions post to, beside that of an endpoint's control messages: its
/// queues in mlx5's format, and the emulator that carries them out in turns of the engine. One
/// thread, but for queues(), which belong to the lanes while they run.
class DevicePath {
 public:
  /// Starts the connection; `access`: of the peer to the endpoint's memory. An error of the queues
  /// ends the run by Environment::fail(). Throws Error.
  DevicePath(Environment& environment, const Options& options, memory::Access access,
             std::string name);
  DevicePath& operator=(DevicePath&&) = delete;
  /// Takes 5 s at most.
  ~DevicePath();

  /// Completion queue entries that it needs.
  static std::uint32_t completions(const Options& options) noexcept;

  [[nodiscard]] rdma::ConnectionDescriptor descriptor() const { return connection_.descriptor(); }
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
  Environment& environment_;
  const Options& options_;
  rdma::Connection connection_;
  memory::Range rings_;
  std::shared_ptr<void> shared_state_;
  std::shared_ptr<void> marks_;
  LaneArray<DeviceQueues> queues_;
  std::unique_ptr<rdma::QueueEmulator> emulator_;
  DeviceMemory memory_;
};

}  // namespace offload::rdma_tool
