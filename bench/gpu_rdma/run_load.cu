#include "bench/gpu_rdma/run_load.hpp"
#include "kernels/group.hpp"
#include "kernels/launch_kernel.cuh"

namespace offload::bench {
namespace {

__global__ void run_loads(Load load) {
  run_load(kernels::Warp{}, blockIdx.x, load);
}

}  // namespace

cudaError_t launch_load(const Load& load, std::uint32_t warps, cudaStream_t stream) {
  return kernels::launch_kernel(run_loads, warps, 32, stream, load);
}

}  // namespace offload::bench
