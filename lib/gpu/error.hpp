#pragma once

#include <cuda_runtime_api.h>

#include <string>
#include <string_view>

#include "core/error.hpp"
#include "core/log.hpp"

/// The CUDA runtime's error convention, turned into this suite's once.
namespace offload::gpu {

inline core::Cause cuda_cause(cudaError_t status) noexcept {
  return {core::Cause::Domain::cuda, static_cast<int>(status)};
}

/// Throws Error (driver) for a failed call: "`action`: CUDA's words".
inline void check_cuda(cudaError_t status, std::string_view action) {
  if (status == cudaSuccess) return;
  throw core::Error(core::ErrorCode::driver,
                    std::string(action) + ": " + cudaGetErrorString(status), cuda_cause(status));
}

/// Logs a failed call. For destructors, which do not throw.
inline void log_cuda(cudaError_t status, const char* action) noexcept {
  if (status != cudaSuccess) core::log_warning("{}: {}", action, cudaGetErrorString(status));
}

}  // namespace offload::gpu
