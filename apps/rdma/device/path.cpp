#include "apps/rdma/device/path.hpp"

#include <algorithm>
#include <bit>

#include "kernels/group.hpp"
#include "rdma/queues/queue_memory.hpp"

namespace offload::rdma_tool {
namespace {

/// The time to stop an emulator, or a connection: flushing takes 2 s at most.
constexpr core::Duration kPathStopTime = std::chrono::milliseconds(2500);

/// Messages that may be on their way, and receives that are posted for them.
std::uint32_t window_of_lanes(const Options& options) noexcept {
  return 2 * options.in_flight;
}

/// Two entries an operation, as put-signal has, and one for a credit. Powers of two, as rings have.
rdma::QueueSizes queue_sizes(const Options& options) noexcept {
  return {std::bit_ceil(2 * options.in_flight + 2), std::bit_ceil(window_of_lanes(options))};
}

bool has_data_in_receives(Operation operation) noexcept {
  return operation == Operation::send || operation == Operation::send_imm ||
         operation == Operation::recv;
}

rdma::ConnectionOptions path_options(const Options& options, memory::Access access) {
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

}  // namespace

std::uint32_t DevicePath::completions(const Options& options) noexcept {
  // The connection has room for its own tasks, which never come; the emulator for its entries.
  return 2 * (queue_sizes(options).send_blocks + queue_sizes(options).receives);
}

DevicePath::DevicePath(Environment& environment, const Options& options, memory::Access access,
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

DevicePath::~DevicePath() {
  if (emulator_ != nullptr) emulator_->stop_within(kPathStopTime);
  emulator_.reset();
  connection_.stop_within(kPathStopTime);
}

void DevicePath::set_memory(const DeviceMemory& memory) {
  memory_ = memory;
  const auto buffer = [this](std::uint32_t number) {
    return memory_.receive_buffer(number, has_data_in_receives(options_.operation));
  };
  static_cast<void>(kernels::rdma::post_receives(kernels::SingleLane{}, queues().receives,
                                                 window_of_lanes(options_), buffer));
}

void DevicePath::connect_to(const rdma::ConnectionDescriptor& peer,
                            const kernels::rdma::RemotePointer& there) {
  memory_.there = there;
  connection_.connect_to(peer);
  emulator_->start_sends();
}

void DevicePath::clear_words() noexcept {
  std::fill_n(memory_.here + memory_.words, DeviceWords::kBytes, std::byte{0});
}

}  // namespace offload::rdma_tool
