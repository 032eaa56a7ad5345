#include "apps/rdma_tasks/device/launcher.hpp"
#include "core/error.hpp"

namespace offload::rdma_tool {

std::unique_ptr<LaneLauncher> make_gpu_launcher(const std::string&) {
  throw core::Error(core::ErrorCode::not_supported, "this build has no CUDA");
}

}  // namespace offload::rdma_tool
