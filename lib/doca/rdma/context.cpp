#include <algorithm>
#include <memory>
#include <tuple>
#include <utility>

#include "doca/mmap.hpp"
#include "doca/rdma/rdma.hpp"

using namespace offload::doca;  // NOLINT(google-build-using-namespace): the calls have no namespace

namespace {

/// Runs a call that configures: with `valid` arguments, of an idle context.
template <class Set>
doca_error_t configure(doca_rdma* rdma, bool valid, Set set) noexcept {
  if (rdma == nullptr || !valid) return DOCA_ERROR_INVALID_VALUE;
  if (rdma->state != DOCA_CTX_STATE_IDLE) return DOCA_ERROR_BAD_STATE;
  set();
  return DOCA_SUCCESS;
}

}  // namespace

doca_rdma::doca_rdma(doca_dev& dev) : device(dev) {
  options.connection.queues.max_sge = kMostElements;
  options.connection.access = offload::memory::Access::none;
}

bool doca_rdma::has_all_tasks() const noexcept {
  return std::apply([](const auto&... each) { return (each.tasks.has_all() && ...); }, kinds);
}

void doca_rdma::configure() {
  RdmaEndpointOptions chosen = options;
  chosen.connection.access = access_of(permissions) & offload::memory::kRemoteAccess;
  // Without receive tasks each queue pair has a receive queue, as it must, which stays empty.
  chosen.connection.queues.max_recv_wr = 1;
  const auto& receives = std::get<TaskKind<doca_rdma_task_receive>>(kinds).tasks;
  chosen.receives = receives.is_configured() ? receive_queue : 0;
  std::unique_ptr<RdmaKernelPath> kernels;
  if (gpu) {
    chosen.connection.queues.max_inline_data = OFFLOAD_GPU_RDMA_INLINE;
    kernels = std::make_unique<RdmaKernelPath>(
        *gpu->get(), device.get()->rdma(),
        RdmaKernelPath::Sizes{chosen.most_connections, chosen.connection.queues.max_send_wr,
                              receive_queue});
  }
  endpoint.configure(device.get()->rdma(), chosen, std::move(kernels));
}

doca_error_t doca_rdma_create(doca_dev* dev, doca_rdma** rdma) {
  if (any_null(dev, rdma)) return DOCA_ERROR_INVALID_VALUE;
  if (!dev->is_rdma()) return DOCA_ERROR_NOT_SUPPORTED;
  return guarded(__func__, [&] {
    static_cast<void>(dev->rdma());
    *rdma = new doca_rdma(*dev);
  });
}

doca_error_t doca_rdma_destroy(doca_rdma* rdma) {
  if (rdma == nullptr) return DOCA_ERROR_INVALID_VALUE;
  if (const doca_error_t result = check_unused(*rdma); result != DOCA_SUCCESS) return result;
  delete rdma;
  return DOCA_SUCCESS;
}

doca_ctx* doca_rdma_as_ctx(doca_rdma* rdma) {
  return rdma;
}

doca_error_t doca_rdma_get_gpu_handle(doca_rdma* rdma, doca_gpu_dev_rdma** gpu_rdma) {
  if (any_null(rdma, gpu_rdma)) return DOCA_ERROR_INVALID_VALUE;
  const RdmaKernelPath* const kernels = rdma->endpoint.kernels();
  if (kernels == nullptr) return DOCA_ERROR_BAD_STATE;
  *gpu_rdma = static_cast<doca_gpu_dev_rdma*>(kernels->handle());
  return DOCA_SUCCESS;
}

doca_error_t doca_rdma_set_permissions(doca_rdma* rdma, uint32_t permissions) {
  constexpr std::uint32_t kAllowed = DOCA_ACCESS_FLAG_LOCAL_READ_WRITE |
                                     DOCA_ACCESS_FLAG_RDMA_READ | DOCA_ACCESS_FLAG_RDMA_WRITE |
                                     DOCA_ACCESS_FLAG_RDMA_ATOMIC;
  return configure(rdma, (permissions & ~kAllowed) == 0, [&] { rdma->permissions = permissions; });
}

doca_error_t doca_rdma_set_gid_index(doca_rdma* rdma, uint32_t gid_index) {
  return configure(rdma, gid_index <= UINT8_MAX, [&] {
    rdma->options.connection.gid.index = static_cast<std::uint8_t>(gid_index);
  });
}

doca_error_t doca_rdma_set_grh_enabled(doca_rdma* rdma, uint8_t grh_enabled) {
  return configure(rdma, grh_enabled <= 1, [] {});
}

doca_error_t doca_rdma_set_transport_type(doca_rdma* rdma,
                                          doca_rdma_transport_type transport_type) {
  const bool is_known = transport_type == DOCA_RDMA_TRANSPORT_TYPE_RC ||
                        transport_type == DOCA_RDMA_TRANSPORT_TYPE_DC;
  const doca_error_t result = configure(rdma, is_known, [] {});
  if (result != DOCA_SUCCESS) return result;
  return transport_type == DOCA_RDMA_TRANSPORT_TYPE_RC ? DOCA_SUCCESS : DOCA_ERROR_NOT_SUPPORTED;
}

doca_error_t doca_rdma_set_send_queue_size(doca_rdma* rdma, uint32_t send_queue_size) {
  return configure(rdma, send_queue_size != 0 && send_queue_size <= kMostQueue,
                   [&] { rdma->options.connection.queues.max_send_wr = send_queue_size; });
}

doca_error_t doca_rdma_set_recv_queue_size(doca_rdma* rdma, uint32_t recv_queue_size) {
  return configure(rdma, recv_queue_size != 0 && recv_queue_size <= kMostQueue,
                   [&] { rdma->receive_queue = recv_queue_size; });
}

doca_error_t doca_rdma_set_max_num_connections(doca_rdma* rdma, uint16_t max_num_connections) {
  return configure(rdma, max_num_connections != 0 && max_num_connections <= kMostConnections,
                   [&] { rdma->options.most_connections = max_num_connections; });
}
