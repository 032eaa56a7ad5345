#include "apps/worker/packets/runner.hpp"
#include "core/error.hpp"

namespace offload::worker {

std::unique_ptr<DatagramRunner> make_cuda_datagrams(const Options&, const backend::Services&) {
  throw core::Error(core::ErrorCode::not_supported, "this build has no CUDA: use --backend cpu");
}

}  // namespace offload::worker
