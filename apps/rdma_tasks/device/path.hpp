#pragma once

#include <algorithm>
#include <bit>
#include <memory>
#include <string>

#include "apps/rdma_tasks/device/launcher.hpp"
#include "apps/rdma_tasks/environment.hpp"
#include "apps/rdma_tasks/options.hpp"
#include "kernels/group.hpp"
#include "rdma/emulator/queue_emulator.hpp"
#include "rdma/queues/queue_memory.hpp"
#include "rdma_tasks/connection.hpp"

namespace offload::rdma_tool {

/// The time to stop an emulator, or a connection: flushing takes 2 s at most.
inline constexpr core::Duration kPathStopTime = std::chrono::milliseconds(2500);

/// Messages that may be on their way, and receives that are posted for them.
inline std::uint32_t window_of_lanes(const Options& options) noexcept {
  return 2 * options.in_flight;
}

/// Two entries an operation, as put-signal has, and one for a credit. Powers of two, as rings have.
inline rdma::QueueSizes queue_sizes(const Options& options) noexcept {
  return {std::bit_ceil(2 * options.in_flight + 2), std::bit_ceil(window_of_lanes(options))};
}

inline bool has_data_in_receives(Operation operation) noexcept {
  return operation == Operation::send || operation == Operation::send_imm ||
         operation == Operation::recv;
}

inline rdma::ConnectionOptions path_options(const Options& options, memory::Access access) {
  rdma::ConnectionOptions result;
  result.queues.qp_type = options.qp_type;
  result.queues.max_send_wr = queue_sizes(options).send_blocks;
  result.queues.max_recv_wr = queue_sizes(options).receives;
  result.queues.max_sge = 1;
  result.queues.max_inline_data = options.max_inline_data;
  result.access = access;
  if (!options.gid.empty()) result.gid.address = rdma::parse_gid(options.gid);
  return result;
}

/// The connection that device functions post to, beside that of an endpoint's control messages: its
/// queues in mlx5's format, and the emulator that carries them out in turns of the engine. One
/// thread, but for queues(), which belong to the lanes while they run.
class DevicePath {
 public:
  /// Starts the connection; `access`: of the peer to the endpoint's memory. An error of the queues
  /// ends the run by Environment::fail(). Throws Error.
  DevicePath(Environment& environment, const Options& options, memory::Access access,
             std::string name)
      : environment_(environment),
        options_(options),
        connection_(environment.objects(), path_options(options, access), name),
        rings_(environment.lanes().allocate(rdma::queue_memory_bytes(queue_sizes(options)))),
        shared_state_(environment.lanes().allocate_own(sizeof(kernels::rdma::SharedSendState))),
        marks_(environment.lanes().allocate_own(queue_sizes(options).send_blocks *
                                                sizeof(std::uint64_t))),
        queues_(environment.lanes(), 1) {
    connection_.connect(environment.engine());
    connection_.start();
    const rdma::QueuePair& pair = *connection_.queue_pair();
    const auto handles =
        rdma::lay_out_queues({rings_.address, rings_.length}, queue_sizes(options), pair.qp_num());
    queues().sends.queue = handles.send;
    queues().shared = {handles.send,
                       static_cast<kernels::rdma::SharedSendState*>(shared_state_.get()),
                       static_cast<std::uint64_t*>(marks_.get())};
    queues().receives.queue = handles.receive;
    const auto objects = environment.objects();
    emulator_ = std::make_unique<rdma::QueueEmulator>(
        rdma::QueueEmulatorParts{objects.domain, objects.completions, pair}, handles,
        [this](rdma::QueueEmulator&, const core::Error& why) { environment_.fail(why); },
        std::move(name));
    emulator_->connect(environment.engine());
    emulator_->start();
  }
  DevicePath& operator=(DevicePath&&) = delete;
  /// Takes 5 s at most.
  ~DevicePath() {
    if (emulator_ != nullptr) emulator_->stop_within(kPathStopTime);
    emulator_.reset();
    connection_.stop_within(kPathStopTime);
  }

  /// Completion queue entries that it needs.
  static std::uint32_t completions(const Options& options) noexcept {
    // The connection has room for its own tasks, which never come; the emulator for its entries.
    return 2 * (queue_sizes(options).send_blocks + queue_sizes(options).receives);
  }

  [[nodiscard]] rdma::ConnectionDescriptor descriptor() const { return connection_.descriptor(); }
  /// Before connect_to(): where the lanes find their memory. Posts the receives.
  void set_memory(const DeviceMemory& memory) {
    memory_ = memory;
    const auto buffer = [this](std::uint32_t number) {
      return memory_.receive_buffer(number, has_data_in_receives(options_.operation));
    };
    static_cast<void>(kernels::rdma::post_receives(kernels::SingleLane{}, queues().receives,
                                                   window_of_lanes(options_), buffer));
  }
  /// Entries are carried out from here on.
  void connect_to(const rdma::ConnectionDescriptor& peer,
                  const kernels::rdma::RemotePointer& there) {
    memory_.there = there;
    connection_.connect_to(peer);
    emulator_->start_sends();
  }

  [[nodiscard]] const DeviceMemory& memory() const noexcept { return memory_; }
  [[nodiscard]] DeviceQueues& queues() noexcept { return *queues_.get(); }
  /// Begins a run: both ends' counts are zero. Nothing may be under way.
  void clear_words() noexcept {
    std::fill_n(memory_.here + memory_.words, DeviceWords::kBytes, std::byte{0});
  }

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
