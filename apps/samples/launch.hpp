#pragma once

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "apps/samples/sample_card.hpp"
#include "core/exit_status.hpp"
#include "core/process/thread.hpp"
#include "kernels/group.hpp"
#include "kernels/rdma/wait.hpp"
#if defined(__CUDACC__)
#include <cuda_runtime_api.h>

#include "kernels/launch_kernel.cuh"
#endif

/// Shared by the RDMA samples: memory that a GPU, or threads in its place, and the card reach, and
/// the start of the poster.
namespace offload::samples {

/// No wait of a sample is longer.
OFFLOAD_HOST_DEVICE constexpr kernels::rdma::WaitLimit patience() {
  return {5'000'000'000};
}

inline bool has_gpu() {
#if defined(__CUDACC__)
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess && count != 0;
#else
  return false;
#endif
}

/// Zeros that blocks reach: pinned where there is a GPU. Throws std::bad_alloc.
inline std::shared_ptr<void> allocate(std::size_t bytes) {
#if defined(__CUDACC__)
  if (has_gpu()) {
    void* pinned = nullptr;
    if (cudaHostAlloc(&pinned, bytes, cudaHostAllocPortable) != cudaSuccess) throw std::bad_alloc();
    std::memset(pinned, 0, bytes);
    return {pinned, [](void* data) { cudaFreeHost(data); }};
  }
#endif
  constexpr std::align_val_t kAlignment{64};
  void* const plain = ::operator new(bytes, kAlignment);
  std::memset(plain, 0, bytes);
  return {plain, [](void* data) { ::operator delete(data, kAlignment); }};
}

/// Zeros as of allocate(), under a key of `card`.
class Memory {
 public:
  Memory(SampleCard& card, std::size_t bytes)
      : data_(allocate(bytes)), key_(card.register_memory(data_.get(), bytes)) {}

  template <class T>
  [[nodiscard]] T* as() const {
    return static_cast<T*>(data_.get());
  }
  [[nodiscard]] kernels::rdma::LocalBuffer local(std::size_t offset, std::uint32_t length) const {
    return {reinterpret_cast<std::uint64_t>(data_.get()) + offset, length, key_};
  }
  [[nodiscard]] kernels::rdma::RemotePointer remote(std::size_t offset = 0) const {
    return {reinterpret_cast<std::uint64_t>(data_.get()) + offset, key_};
  }

 private:
  std::shared_ptr<void> data_;
  std::uint32_t key_;
};

#if defined(__CUDACC__)
template <class Body>
__global__ void run_body(const Body body) {
  body(kernels::Warp{}, blockIdx.x);
}
#endif

/// Calls `body`(group, block) for `blocks` blocks at once and waits: each a warp of the GPU, or a
/// thread where there is none. `body` is copied, and callable on both. Throws std::runtime_error.
template <class Body>
void run_blocks(unsigned blocks, const Body& body) {
#if defined(__CUDACC__)
  if (has_gpu()) {
    cudaError_t status = kernels::launch_kernel(run_body<Body>, blocks, 32, nullptr, body);
    if (status == cudaSuccess) status = cudaDeviceSynchronize();
    if (status != cudaSuccess) throw std::runtime_error(cudaGetErrorString(status));
    return;
  }
#endif
  struct Threads : std::vector<std::thread> {
    ~Threads() {
      for (std::thread& thread : *this) thread.join();
    }
  } threads;
  threads.reserve(blocks);
  for (unsigned block = 0; block < blocks; ++block) {
    threads.push_back(core::start_thread("block", [=] { body(kernels::SingleLane{}, block); }));
  }
}

/// The body of a sample's main: prints what `run`() says, the exit status is 0 if `ok` is set.
template <class Run>
int sample(const char* name, const Run& run) {
  return core::exit_status_of(name, [&] {
    bool ok = false;
    const std::string said = run(ok);
    std::printf("%s, %s: %s\n", name, has_gpu() ? "posted by a GPU" : "posted by threads",
                said.c_str());
    return ok ? 0 : 1;
  });
}

}  // namespace offload::samples
