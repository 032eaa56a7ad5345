#include "rdma/mlx5/handles.hpp"

#include <bit>
#include <string>

#include "core/error.hpp"

namespace offload::rdma::mlx5 {
namespace {

using core::ErrorCode;
using kernels::rdma::Cqe;
using kernels::rdma::kBlockBytes;
using kernels::rdma::Segment;

void require_stride(const char* what, std::uint32_t bytes, std::size_t expected) {
  if (bytes == expected) return;
  throw core::Error(ErrorCode::not_supported, std::string(what) + " of " + std::to_string(bytes) +
                                                  " bytes, not " + std::to_string(expected));
}

/// `address` as what lies there: `count` objects in the arena.
template <class T>
T* part_of(const Arena& arena, void* address, std::size_t count, const char* what) {
  if (address == nullptr || reinterpret_cast<std::uintptr_t>(address) % alignof(T) != 0) {
    throw core::Error(ErrorCode::not_supported, std::string("libmlx5 reports no ") + what);
  }
  if (!arena.has(address, count * sizeof(T))) {
    throw core::Error(ErrorCode::not_supported, std::string("libmlx5 allocated the ") + what +
                                                    " outside of the given memory");
  }
  return static_cast<T*>(address);
}

kernels::rdma::CompletionQueue completions_of(const mlx5dv_cq& native, const Arena& arena) {
  require_stride("completions", native.cqe_size, sizeof(Cqe));
  if (!std::has_single_bit(native.cqe_cnt)) {
    throw core::Error(ErrorCode::invalid_value, std::to_string(native.cqe_cnt) +
                                                    " places for completions: not a power of two");
  }
  return {part_of<Cqe>(arena, native.buf, native.cqe_cnt, "completions"),
          static_cast<std::uint32_t>(std::countr_zero(native.cqe_cnt)),
          part_of<std::uint32_t>(arena, native.dbrec, 2, "record of a completion queue"),
          native.cqn};
}

}  // namespace

QueuePairMemory handles_of(const NativeQueues& native, const Arena& arena) {
  const mlx5dv_qp& pair = native.pair;
  require_stride("blocks of a send queue", pair.sq.stride, kBlockBytes);
  require_stride("entries of a receive queue", pair.rq.stride, sizeof(Segment));
  if (pair.bf.reg == nullptr ||
      reinterpret_cast<std::uintptr_t>(pair.bf.reg) % alignof(std::uint64_t) != 0) {
    throw core::Error(ErrorCode::not_supported, "libmlx5 reports no doorbell");
  }
  auto* const records = part_of<std::uint32_t>(arena, pair.dbrec, 2, "record of a queue pair");
  QueuePairMemory queues{};
  queues.send.completions = completions_of(native.sends, arena);
  queues.receive.completions = completions_of(native.receives, arena);
  queues.send.ring.blocks = pair.sq.wqe_cnt;
  queues.receive.entries = pair.rq.wqe_cnt;
  check_sizes(queues);
  const std::size_t segments = std::size_t{pair.sq.wqe_cnt} * kernels::rdma::kSegmentsPerBlock;
  queues.send.ring.segments = part_of<Segment>(arena, pair.sq.buf, segments, "send queue");
  queues.receive.ring = part_of<Segment>(arena, pair.rq.buf, pair.rq.wqe_cnt, "receive queue");
  queues.send.number = native.number;
  queues.send.record = records + MLX5_SND_DBR;
  queues.receive.record = records + MLX5_RCV_DBR;
  queues.send.doorbell = static_cast<std::uint64_t*>(pair.bf.reg);
  return queues;
}

}  // namespace offload::rdma::mlx5
