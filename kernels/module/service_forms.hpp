#pragma once

#include <cstdio>
#include <exception>
#include <memory>
#include <new>
#include <type_traits>

#include "kernels/module/service_setup.hpp"

#if defined(__CUDACC__)
#include "kernels/graph/batch_kernel.cuh"
#include "kernels/persistent_worker.cuh"
#endif

/// The functions of a ServiceInterface, made of a service's type: the forms in which it serves on a
/// CPU, and where nvcc compiles this, on a GPU.
namespace offload::kernels {

/// A service's object as make() returns it.
template <class Service>
struct ModuleObject {
  explicit ModuleObject(std::int32_t device) : memory(device) {}

  ServiceMemory memory;
  Service service{};
};

template <class Service, class = void>
struct HasMake : std::false_type {};
template <class Service>
struct HasMake<Service, std::void_t<decltype(Service::make(std::declval<ServiceSetup&>()))>>
    : std::true_type {};

template <class Service>
const Service& service_of(const void* object) {
  return static_cast<const ModuleObject<Service>*>(object)->service;
}

/// Makes the GPU current on this thread, and loads the kernels there. A module has a separate CUDA
/// runtime, with its own current device. Throws std::exception.
template <class Service>
void prepare_gpu([[maybe_unused]] std::int32_t device) {
#if defined(__CUDACC__)
  cudaError_t status = cudaSetDevice(device);
  if (status == cudaSuccess) status = load_persistent_worker<Service>();
  if (status == cudaErrorNoKernelImageForDevice || status == cudaErrorInvalidDeviceFunction) {
    int major = 0;
    int minor = 0;
    static_cast<void>(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
    static_cast<void>(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device));
    throw std::runtime_error("it has no code for this GPU, of compute capability " +
                             std::to_string(major) + "." + std::to_string(minor));
  }
  if (status != cudaSuccess) throw std::runtime_error(cudaGetErrorString(status));
#else
  throw std::runtime_error("it has no code for a GPU");
#endif
}

template <class Service>
void* make_service(ServiceMaking* making) {
  static_assert(std::is_trivially_copyable_v<Service>, "it is copied into a kernel's parameters");
  static_assert(sizeof(Service) <= 2048, "a kernel's parameters have no room for more");
  making->error[0] = '\0';
  try {
    if (making->device != kOnCpu) prepare_gpu<Service>(making->device);
    auto object = std::make_unique<ModuleObject<Service>>(making->device);
    if constexpr (HasMake<Service>::value) {
      ServiceSetup setup(*making, object->memory);
      object->service = Service::make(setup);
    }
    making->bytes = object->memory.bytes();
    return object.release();
  } catch (const std::bad_alloc&) {  // the worker has words for it
  } catch (const std::exception& error) {
    std::snprintf(making->error, sizeof making->error, "%s", error.what());
  } catch (...) {
    std::snprintf(making->error, sizeof making->error,
                  "it threw an object that is not a std::exception");
  }
  return nullptr;
}

template <class Service>
void destroy_service(void* object) {
  delete static_cast<ModuleObject<Service>*>(object);
}

template <class Service>
std::uint32_t response_length_of(const void* object, std::uint32_t length) {
  return service_of<Service>(object).response_length(length);
}

template <class Service>
Response respond_on_cpu(const void* object, const ChannelView* channel, std::uint64_t sequence,
                        Staging* staging, Received received) {
  return respond(SingleLane{}, *channel, sequence, service_of<Service>(object), *staging, received);
}

#if defined(__CUDACC__)

template <class Service>
int launch_on_gpu(const void* object, const PersistentWorker* worker, double* taken,
                  CUstream_st* stream) {
  const auto* const made = static_cast<const ModuleObject<Service>*>(object);
  const cudaError_t status = cudaSetDevice(made->memory.device());
  if (status != cudaSuccess) return status;
  return launch_persistent_worker(made->service, *worker, *taken, stream);
}

template <class Service>
int add_batch_kernel_on_gpu(const void* object, const LaunchBatch* batch, CUgraph_st* graph,
                            CUgraphNode_st* after, CUgraphNode_st** node) {
  const auto* const made = static_cast<const ModuleObject<Service>*>(object);
  const cudaError_t status = cudaSetDevice(made->memory.device());
  if (status != cudaSuccess) return status;
  return add_batch_kernel(made->service, *batch, graph, after, node);
}

#endif

/// The interface to `Service`, with a form for GPUs where nvcc compiles this.
template <class Service>
ServiceInterface interface_to() {
  ServiceInterface made{};
  made.size = sizeof made;
  made.version = kServiceInterface;
  made.name = Service::kName;
  made.make = make_service<Service>;
  made.destroy = destroy_service<Service>;
  made.response_length = response_length_of<Service>;
  made.respond = respond_on_cpu<Service>;
#if defined(__CUDACC__)
  made.launch = launch_on_gpu<Service>;
  made.add_batch_kernel = add_batch_kernel_on_gpu<Service>;
#endif
  return made;
}

}  // namespace offload::kernels
