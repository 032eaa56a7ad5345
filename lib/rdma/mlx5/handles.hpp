#pragma once

#include <infiniband/mlx5dv.h>

#include "rdma/mlx5/arena.hpp"

namespace offload::rdma::mlx5 {

/// What libmlx5 tells of a queue pair and its two completion queues (mlx5dv_init_obj(3)).
struct NativeQueues {
  std::uint32_t number = 0;
  mlx5dv_qp pair{};
  mlx5dv_cq sends{};
  mlx5dv_cq receives{};
};

/// The handles for it, the doorbell being the card's register. Throws Error, with what is wrong,
/// for queues that kernels/rdma does not post to or poll: not_supported for another stride or size
/// of entries, for none of a ring, record or register, and for what lies outside of `arena`;
/// invalid_value for numbers of entries that are none.
QueuePairMemory handles_of(const NativeQueues& native, const Arena& arena);

}  // namespace offload::rdma::mlx5
