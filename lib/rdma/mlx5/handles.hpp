#pragma once

#include <infiniband/mlx5dv.h>

#include "rdma/mlx5/arena.hpp"

namespace offload::rdma::mlx5 {

/// The data of libmlx5 about a queue pair and its two completion queues (mlx5dv_init_obj(3)).
struct NativeQueues {
  std::uint32_t number = 0;
  mlx5dv_qp pair{};
  mlx5dv_cq sends{};
  mlx5dv_cq receives{};
};

/// Returns the handles for it, with the card's register as the doorbell. Throws Error for queues
/// that kernels/rdma cannot use: not_supported for another stride or size of entries, for a missing
/// ring, record or register, and for memory outside of `arena`; invalid_value for invalid numbers
/// of entries.
QueuePairMemory handles_of(const NativeQueues& native, const Arena& arena);

}  // namespace offload::rdma::mlx5
