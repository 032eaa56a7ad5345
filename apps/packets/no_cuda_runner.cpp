#include "apps/packets/runner.hpp"
#include "core/error.hpp"

namespace offload::packets {

std::unique_ptr<Runner> make_cuda_runner(packets::FrameMemory&, packets::Port&, const Plan&) {
  throw core::Error(core::ErrorCode::not_supported, "this build has no CUDA: use --backend cpu");
}

}  // namespace offload::packets
