#include "apps/rdma_tasks/device/path.hpp"

#include <algorithm>
#include <bit>

#include "kernels/group.hpp"
#include "rdma/queues/queue_memory.hpp"

namespace offload::rdma_tool {
namespace {

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

rdma::ConnectionOptions path_options(const Environment& environment, const Options& options,
                                     memory::Access access) {
  rdma::ConnectionOptions result;
  static_cast<rdma::PathOptions&>(result) = environment.path();
  result.queues.qp_type = options.qp_type;
  result.queues.max_send_wr = queue_sizes(options).send_blocks;
  result.queues.max_recv_wr = queue_sizes(options).receives;
  result.queues.max_sge = 1;
  result.queues.max_inline_data = options.max_inline_data;
  result.access = access;
  return result;
}

}  // namespace

std::uint32_t DevicePath::completions(const Options& options) noexcept {
  // The connection has room for its own tasks, which never come; the emulator for its entries.
  return 2 * (queue_sizes(options).send_blocks + queue_sizes(options).receives);
}

DevicePath::DevicePath(Environment& environment, const Options& options, memory::Access access,
                       std::string name)
    : options_(options),
      rings_(make_rings({environment, queue_sizes(options),
                         path_options(environment, options, access), std::move(name)},
                        options.rings)),
      shared_state_(environment.lanes().allocate_own(sizeof(kernels::rdma::SharedSendState))),
      marks_(environment.lanes().allocate_own(queue_sizes(options).send_blocks *
                                              sizeof(std::uint64_t))),
      queues_(environment.lanes(), 1) {
  const rdma::QueuePairMemory& handles = rings_->queues();
  queues().sends.queue = handles.send;
  queues().shared = {handles.send,
                     static_cast<kernels::rdma::SharedSendState*>(shared_state_.get()),
                     static_cast<std::uint64_t*>(marks_.get())};
  queues().receives.queue = handles.receive;
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
  rings_->connect_to(peer);
}

void DevicePath::clear_words() noexcept {
  std::fill_n(memory_.here + memory_.words, DeviceWords::kBytes, std::byte{0});
}

}  // namespace offload::rdma_tool
