#include "rdma/emulator/translation.hpp"

#include "rdma/verbs/queue_pair.hpp"

namespace offload::rdma {
namespace {

using kernels::rdma::Completion;
using kernels::rdma::CqeKind;
using kernels::rdma::is_atomic;
using kernels::rdma::LocalBuffer;
using kernels::rdma::Opcode;
using kernels::rdma::Syndrome;

constexpr std::uint64_t kAtomicBytes = sizeof(std::uint64_t);

ibv_wr_opcode native(Opcode opcode) noexcept {
  switch (opcode) {
    case Opcode::rdma_write: return IBV_WR_RDMA_WRITE;
    case Opcode::rdma_write_with_imm: return IBV_WR_RDMA_WRITE_WITH_IMM;
    case Opcode::send_with_imm: return IBV_WR_SEND_WITH_IMM;
    case Opcode::rdma_read: return IBV_WR_RDMA_READ;
    case Opcode::compare_swap: return IBV_WR_ATOMIC_CMP_AND_SWP;
    case Opcode::fetch_add: return IBV_WR_ATOMIC_FETCH_AND_ADD;
    default: return IBV_WR_SEND;
  }
}

}  // namespace

std::uint64_t length_of(const Entry& entry) noexcept {
  std::uint64_t length = entry.work.inline_length;
  for (std::uint32_t i = 0; i < entry.work.buffer_count; ++i) length += entry.buffers[i].length;
  return length;
}

Syndrome refusal_of(const Entry& entry, std::uint64_t length, const QueueLimits& limits) noexcept {
  const auto& work = entry.work;
  if (work.opcode == Opcode::wait) return Syndrome::local_queue_operation;
  if (!has_request(work.opcode)) return Syndrome::none;
  const bool reads = work.opcode == Opcode::rdma_read || is_atomic(work.opcode);
  if ((reads && !limits.is_reliable) || work.buffer_count > limits.max_send_sge) {
    return Syndrome::local_queue_operation;
  }
  if (is_atomic(work.opcode)) {
    if (work.remote.address % kAtomicBytes != 0) return Syndrome::remote_invalid_request;
    if (length != kAtomicBytes) return Syndrome::local_length;
  }
  return length > kMaxMessage ? Syndrome::local_length : Syndrome::none;
}

void fill_request(const Entry& entry, const QueueLimits& limits, std::uint32_t inline_lkey,
                  ibv_sge* pieces, ibv_send_wr& request) noexcept {
  const auto& work = entry.work;
  unsigned flags = 0;
  if ((work.flags & kernels::rdma::kSignaled) != 0) flags |= IBV_SEND_SIGNALED;
  if ((work.flags & kernels::rdma::kSolicited) != 0) flags |= IBV_SEND_SOLICITED;
  // A card has two fences; verbs have the one that waits for reads and atomics. All other
  // operations take effect at the peer in the order of posting, so it replaces both; only RC has
  // it.
  constexpr std::uint8_t kFences = kernels::rdma::kSmallFence | kernels::rdma::kFence;
  if ((work.flags & kFences) != 0 && limits.is_reliable) flags |= IBV_SEND_FENCE;
  request.opcode = native(work.opcode);
  request.imm_data = work.immediate;
  request.sg_list = pieces;
  request.num_sge = static_cast<int>(work.buffer_count);
  if (is_atomic(work.opcode)) {
    request.wr.atomic = {work.remote.address, work.compare_add, work.swap, work.remote.rkey};
  } else {
    request.wr.rdma = {work.remote.address, work.remote.rkey};
  }
  for (std::uint32_t i = 0; i < work.buffer_count; ++i) {
    const LocalBuffer& buffer = entry.buffers[i];
    pieces[i] = {buffer.address, buffer.length, buffer.lkey};
  }
  if (work.inline_length != 0) {
    pieces[0] = {reinterpret_cast<std::uint64_t>(work.inline_data), work.inline_length,
                 inline_lkey};
    request.num_sge = 1;
    if (work.inline_length <= limits.max_inline_data) flags |= IBV_SEND_INLINE;
  }
  request.send_flags = flags;
}

Syndrome syndrome_of(ibv_wc_status status) noexcept {
  switch (status) {
    case IBV_WC_SUCCESS: return Syndrome::none;
    case IBV_WC_LOC_LEN_ERR: return Syndrome::local_length;
    case IBV_WC_LOC_PROT_ERR: return Syndrome::local_protection;
    case IBV_WC_WR_FLUSH_ERR: return Syndrome::flushed;
    case IBV_WC_BAD_RESP_ERR: return Syndrome::bad_response;
    case IBV_WC_LOC_ACCESS_ERR: return Syndrome::local_access;
    case IBV_WC_REM_INV_REQ_ERR: return Syndrome::remote_invalid_request;
    case IBV_WC_REM_ACCESS_ERR: return Syndrome::remote_access;
    case IBV_WC_REM_OP_ERR: return Syndrome::remote_operation;
    case IBV_WC_RESP_TIMEOUT_ERR:
    case IBV_WC_RETRY_EXC_ERR: return Syndrome::transport_retries;
    case IBV_WC_RNR_RETRY_EXC_ERR: return Syndrome::receiver_not_ready;
    case IBV_WC_REM_ABORT_ERR: return Syndrome::remote_aborted;
    default: return Syndrome::local_queue_operation;  // of this end, in a way that a card has not
  }
}

Completion received(const ibv_wc& told, std::uint32_t queue, std::uint64_t counter) noexcept {
  Completion completion{};
  completion.counter = static_cast<std::uint16_t>(counter);
  completion.queue = queue;
  completion.syndrome = syndrome_of(told.status);
  if (told.status != IBV_WC_SUCCESS) {
    completion.kind = CqeKind::receive_error;
    completion.vendor = static_cast<std::uint8_t>(told.vendor_err);
    return completion;
  }
  completion.byte_count = told.byte_len;
  const bool has_immediate = (told.wc_flags & IBV_WC_WITH_IMM) != 0;
  if (has_immediate) completion.immediate = told.imm_data;
  completion.kind = told.opcode == IBV_WC_RECV_RDMA_WITH_IMM ? CqeKind::received_write_with_imm
                    : has_immediate                          ? CqeKind::received_send_with_imm
                                                             : CqeKind::received_send;
  return completion;
}

}  // namespace offload::rdma
