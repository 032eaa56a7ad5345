#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "rdma/queues/entry_reader.hpp"

/// Entries in mlx5's formats as work requests of verbs, and the other way round.
namespace offload::rdma {

/// The limits of a queue pair.
struct QueueLimits {
  bool is_reliable;  ///< RC, else UC
  std::uint32_t max_send_sge;
  std::uint32_t max_inline_data;
};

/// Bytes that an entry moves.
std::uint64_t length_of(const Entry& entry) noexcept;

/// Returns why a queue pair refuses an entry of `length` bytes, checked here because each device
/// reports it differently; Syndrome::none: it accepts the entry.
kernels::rdma::Syndrome refusal_of(const Entry& entry, std::uint64_t length,
                                   const QueueLimits& limits) noexcept;

/// Returns whether there is a work request for it. A no-op and a dump have none: verbs know
/// neither.
constexpr bool has_request(kernels::rdma::Opcode opcode) {
  return opcode != kernels::rdma::Opcode::nop && opcode != kDump;
}

/// Makes `request` that of an entry that has one and was not refused; wr_id and next are the
/// caller's, and what no connected queue pair looks at stays as it was. It is gathered into
/// `pieces`, which has room for the entry's buffers and one more. Inline data lies at
/// `entry.work.inline_data`, under `inline_lkey`: max_inline_data decides whether the device reads
/// it there.
void fill_request(const Entry& entry, const QueueLimits& limits, std::uint32_t inline_lkey,
                  ibv_sge* pieces, ibv_send_wr& request) noexcept;

/// Why a work request failed, as a card says it.
kernels::rdma::Syndrome syndrome_of(ibv_wc_status status) noexcept;

/// The completion of a receive. `counter`: its position.
kernels::rdma::Completion received(const ibv_wc& told, std::uint32_t queue,
                                   std::uint64_t counter) noexcept;

}  // namespace offload::rdma
