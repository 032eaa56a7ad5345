#pragma once

#include <cstddef>

namespace offload::rdma::mlx5 {

/// Memory that begins at a page.
struct alignas(4096) Page {
  std::byte bytes[4096];
};

}  // namespace offload::rdma::mlx5
