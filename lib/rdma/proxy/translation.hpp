#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <span>

#include "rdma/queues/entry_reader.hpp"
#include "rdma/verbs/queue_pair.hpp"

/// Entries in mlx5's formats as work requests of verbs, and the other way round.
namespace offload::rdma {

/// What of an entry a queue pair does not take, checked here as devices report it each in a way of
/// its own; Syndrome::none: it takes it.
kernels::rdma::Syndrome refusal_of(const Entry& entry, const QueuePair& queue) noexcept;

/// Whether there is a work request for it. A no-op and a dump have none: verbs know neither.
constexpr bool has_request(kernels::rdma::Opcode opcode) {
  return opcode != kernels::rdma::Opcode::nop && opcode != kDump;
}

/// The work request of an entry that has one and was not refused, of which wr_id and next are to be
/// set. It is gathered into `pieces`, which has room for the entry's buffers and one more. Inline
/// data lies at `entry.work.inline_data`, under `inline_lkey`: the queue pair's max_inline_data
/// decides whether the device reads it there.
ibv_send_wr request_of(const Entry& entry, const QueuePair& queue, std::uint32_t inline_lkey,
                       std::span<ibv_sge> pieces) noexcept;

/// Bytes that it moves to or from memory of the peer that is named; 0 for the others.
std::uint32_t bytes_of(const Entry& entry) noexcept;

/// Why a work request failed, as a card says it.
kernels::rdma::Syndrome syndrome_of(ibv_wc_status status) noexcept;

/// The completion of a receive. `counter`: its position.
kernels::rdma::Completion received(const ibv_wc& told, std::uint32_t queue,
                                   std::uint64_t counter) noexcept;

}  // namespace offload::rdma
