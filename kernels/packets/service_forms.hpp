#pragma once

#include "kernels/module/service_forms.hpp"
#include "kernels/packets/datagram_worker.hpp"

#if defined(__CUDACC__)
#include "kernels/packets/datagram_kernel.cuh"
#endif

/// The forms of a service that answer datagrams (kernels/module/service_forms.hpp).
namespace offload::kernels::packets {

static_assert(sizeof(DatagramWork) == 48 && sizeof(DatagramState) == 192,
              "modules have these too: a new size is a new kServiceInterface");

template <class Service>
bool serve_datagrams_on_cpu(const void* object, const DatagramWork* work, DatagramState* state,
                            DatagramStaging* staging, bool* had_work) {
  const SingleLane group;
  return DatagramWorker<SingleLane, Service>(group, service_of<Service>(object), *work, *state,
                                             *staging)
      .turn(*had_work);
}

#if defined(__CUDACC__)

template <class Service>
int launch_datagrams_on_gpu(const void* object, const DatagramWork* works, std::uint32_t count,
                            CUstream_st* stream) {
  const auto* const made = static_cast<const ModuleObject<Service>*>(object);
  const cudaError_t status = cudaSetDevice(made->memory.device());
  if (status != cudaSuccess) return status;
  return launch_datagram_worker(made->service, works, count, stream);
}

#endif

/// Adds these forms to the interface to `Service`.
template <class Service>
void add_forms(ServiceInterface& made) {
  made.serve_datagrams = serve_datagrams_on_cpu<Service>;
#if defined(__CUDACC__)
  made.launch_datagrams = launch_datagrams_on_gpu<Service>;
#endif
}

}  // namespace offload::kernels::packets
