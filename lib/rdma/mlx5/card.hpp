#pragma once

#include <infiniband/mlx5dv.h>

#include "core/error.hpp"
#include "rdma/verbs/device_context.hpp"

namespace offload::rdma::mlx5 {

/// Returns whether libmlx5 drives `device`.
inline bool drives(const DeviceContext& device) noexcept {
  return mlx5dv_is_supported(device.get()->device);
}

/// Throws Error (not_supported) if libmlx5 does not drive `device`.
inline void require_card(const DeviceContext& device) {
  if (drives(device)) return;
  throw core::Error(core::ErrorCode::not_supported, device.name() + " is not an mlx5 card");
}

}  // namespace offload::rdma::mlx5
