#include "doca/verbs/card.hpp"

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

#include "doca/guard.hpp"
#include "doca/rdma/rdma_device.hpp"

namespace offload::doca {
namespace {

namespace wire = kernels::rdma;
using core::Error;
using core::ErrorCode;
using memory::Access;
using rdma::mlx5::DevxQueuePair;
using rdma::mlx5::kRingAlignment;
using rdma::mlx5::whole_pages;
using wire::CqeKind;
using wire::Opcode;
using wire::Syndrome;

/// The most completions of a queue whose number can be asked for.
constexpr std::uint32_t kMostCompletions = 1U << 22;

/// Returns the memory of queues as a card's commands name it.
rdma::mlx5::QueueSpace space_of(const memory::Range& memory) noexcept {
  return {memory.address, memory.length};
}

std::uint32_t log2_of(std::uint32_t size) {
  if (size > kMostCompletions) {
    throw Error(ErrorCode::invalid_value, "invalid completion queue size " + std::to_string(size) +
                                              "; allowed are 1 to " +
                                              std::to_string(kMostCompletions));
  }
  return static_cast<std::uint32_t>(std::countr_zero(std::bit_ceil(size)));
}

/// The longest entry of a request, blocks.
std::uint32_t blocks_of_request(std::uint32_t buffers) {
  constexpr std::uint32_t kControlAndRemote = 2;
  return wire::blocks_of(kControlAndRemote + buffers);
}

rdma::QueueSizes sizes_of(const doca_verbs_qp_init_attr& from) {
  if (from.max_recv_sge > 1 || from.max_inline_data != 0) {
    throw Error(ErrorCode::not_supported,
                "with an external UAR, receives of several buffers and inline data");
  }
  constexpr std::uint32_t kMostBuffers = wire::kMostSegments - 2;
  if (from.max_send_sge > kMostBuffers || from.max_send_wr > rdma::kMostEntries ||
      from.max_recv_wr > rdma::kMostEntries) {
    throw Error(ErrorCode::invalid_value, "a queue pair has at most " +
                                              std::to_string(rdma::kMostEntries) + " entries, of " +
                                              std::to_string(kMostBuffers) + " buffers");
  }
  const std::uint32_t blocks = from.max_send_wr * blocks_of_request(from.max_send_sge);
  return {std::bit_ceil(std::max(blocks, 1U)), std::bit_ceil(std::max(from.max_recv_wr, 1U))};
}

ibv_wc_status status_of(const wire::Completion& completion) noexcept {
  switch (completion.syndrome) {
    case Syndrome::none: return IBV_WC_SUCCESS;
    case Syndrome::local_length: return IBV_WC_LOC_LEN_ERR;
    case Syndrome::local_queue_operation: return IBV_WC_LOC_QP_OP_ERR;
    case Syndrome::local_protection: return IBV_WC_LOC_PROT_ERR;
    case Syndrome::flushed: return IBV_WC_WR_FLUSH_ERR;
    case Syndrome::bad_response: return IBV_WC_BAD_RESP_ERR;
    case Syndrome::local_access: return IBV_WC_LOC_ACCESS_ERR;
    case Syndrome::remote_invalid_request: return IBV_WC_REM_INV_REQ_ERR;
    case Syndrome::remote_access: return IBV_WC_REM_ACCESS_ERR;
    case Syndrome::remote_operation: return IBV_WC_REM_OP_ERR;
    case Syndrome::transport_retries: return IBV_WC_RETRY_EXC_ERR;
    case Syndrome::receiver_not_ready: return IBV_WC_RNR_RETRY_EXC_ERR;
    case Syndrome::remote_aborted: return IBV_WC_REM_ABORT_ERR;
  }
  return IBV_WC_GENERAL_ERR;
}

ibv_wc_opcode opcode_of(Opcode opcode) noexcept {
  switch (opcode) {
    case Opcode::wait: return IBV_WC_DRIVER1;
    case Opcode::rdma_read: return IBV_WC_RDMA_READ;
    case Opcode::rdma_write:
    case Opcode::rdma_write_with_imm: return IBV_WC_RDMA_WRITE;
    default: return IBV_WC_SEND;
  }
}

/// Makes the work of a request but for its buffers; nothing if it is not one that can be posted.
std::optional<wire::SendWork> work_of(const ibv_send_wr& request) noexcept {
  wire::SendWork work;
  work.immediate = request.imm_data;
  work.remote = {request.wr.rdma.remote_addr, request.wr.rdma.rkey};
  switch (request.opcode) {
    case IBV_WR_SEND: work.opcode = Opcode::send; break;
    case IBV_WR_SEND_WITH_IMM: work.opcode = Opcode::send_with_imm; break;
    case IBV_WR_RDMA_WRITE: work.opcode = Opcode::rdma_write; break;
    case IBV_WR_RDMA_WRITE_WITH_IMM: work.opcode = Opcode::rdma_write_with_imm; break;
    case IBV_WR_RDMA_READ: work.opcode = Opcode::rdma_read; break;
    case IBV_WR_DRIVER1:
      work.opcode = Opcode::wait;
      work.awaited.value = request.wr.rdma.remote_addr;
      work.awaited.completions = request.wr.rdma.rkey;
      break;
    default: return std::nullopt;
  }
  if ((request.send_flags & IBV_SEND_SOLICITED) != 0) work.flags |= wire::kSolicited;
  if ((request.send_flags & IBV_SEND_FENCE) != 0) work.flags |= wire::kFence;
  return work;
}

}  // namespace

doca_uar& uar_of(const doca_verbs_context& context, doca_uar* uar) {
  if (uar->native == context.device.get()) return *uar;
  throw Error(ErrorCode::invalid_value, "an external UAR of another context");
}

void set_wait(ibv_send_wr& request, std::uint32_t queue, std::uint32_t index) noexcept {
  request.opcode = IBV_WR_DRIVER1;
  request.sg_list = nullptr;
  request.num_sge = 0;
  request.wr.rdma = {index, queue};
}

CardCq::CardCq(doca_verbs_context& of, const doca_verbs_cq_attr& attributes)
    : doca_verbs_cq(of),
      uar_(uar_of(of, attributes.uar)),
      log2_(log2_of(attributes.size)),
      memory_(memory::allocate_range(whole_pages(sizeof(wire::Cqe) << log2_) + kRingAlignment)),
      space_(of.device, space_of(memory_)) {
  const rdma::mlx5::RingPlace place{0, whole_pages(sizeof(wire::Cqe) << log2_)};
  queue_ = {reinterpret_cast<wire::Cqe*>(memory_.address), log2_,
            reinterpret_cast<std::uint32_t*>(memory_.address + place.record)};
  rdma::mlx5::mark_fresh({queue_.entries, std::size_t{1} << log2_});
  native_ = make_card_completions(of.device, space_, uar_->registers, place, log2_);
  queue_.number = native_.number();
}

int CardCq::poll(int most, ibv_wc* into) noexcept {
  int found = 0;
  const std::uint64_t before = taken;
  wire::Completion completion{};
  while (found < most && wire::poll_completion(queue_, taken, completion)) {
    ++taken;
    const auto pair = pairs_.find(completion.queue);
    if (pair != pairs_.end()) into[found++] = pair->second->finish(completion);
  }
  if (taken != before) wire::free_completions(queue_, taken);
  return found;
}

void CardCq::add(CardQp& pair) {
  pairs_[pair.number()] = &pair;
}

void CardCq::forget(std::uint32_t pair) noexcept {
  pairs_.erase(pair);
  const std::uint64_t places = std::uint64_t{1} << log2_;
  wire::Completion completion{};
  for (std::uint64_t i = taken; i - taken < places; ++i) {
    if (!wire::poll_completion(queue_, i, completion)) return;
    if (completion.queue == pair) queue_.entries[i % places].words[wire::kCqeQueue] = 0;
  }
}

CardQp::CardQp(doca_verbs_context& of, const doca_verbs_qp_init_attr& from)
    : doca_verbs_qp(of, from),
      uar_(uar_of(of, from.uar)),
      sends_(static_cast<CardCq&>(sends())),
      receives_(static_cast<CardCq&>(receives())),
      capacity_(from),
      always_signaled_(from.sq_sig_all != 0),
      sizes_(sizes_of(from)),
      memory_(memory::allocate_range(DevxQueuePair::bytes_of(sizes_))),
      pair_(std::in_place, of.device, from.pd->domain, sizes_, space_of(memory_),
            DevxQueuePair::Options{
                .registers = &uar_->registers,
                .completions =
                    DevxQueuePair::CompletionNumbers{sends_.number(), receives_.number()}}),
      relay_(&doorbell_, pair_->card_register()),
      queues_(pair_->seen_at(memory_.address, &doorbell_)),
      requests_(sizes_.send_blocks),
      receive_ids_(queues_.receive.entries),
      buffers_(from.max_send_sge) {
  if (from.is_master != 0 && !pair_->waits_for_completions()) {
    throw Error(ErrorCode::not_supported, "waits for completions on " + of.device.name());
  }
  sends_.add(*this);
  try {
    receives_.add(*this);
  } catch (...) {
    sends_.forget(number());
    throw;
  }
}

CardQp::~CardQp() {
  const std::uint32_t ended = number();
  pair_.reset();  // first, so that the card writes no more completions of it
  sends_.forget(ended);
  receives_.forget(ended);
}

void modify(DevxQueuePair& pair, const ibv_qp_attr& attributes) {
  switch (attributes.qp_state) {
    case IBV_QPS_INIT: {
      const auto right = [&](unsigned flag, Access access) {
        return (attributes.qp_access_flags & flag) != 0 ? access : Access::none;
      };
      return pair.initialize(attributes.port_num,
                             right(IBV_ACCESS_REMOTE_WRITE, Access::remote_write) |
                                 right(IBV_ACCESS_REMOTE_READ, Access::remote_read) |
                                 right(IBV_ACCESS_REMOTE_ATOMIC, Access::remote_atomic));
    }
    case IBV_QPS_RTR:
      return pair.ready_to_receive({attributes.ah_attr, attributes.dest_qp_num, attributes.rq_psn,
                                    attributes.path_mtu, attributes.max_dest_rd_atomic,
                                    attributes.min_rnr_timer});
    case IBV_QPS_RTS:
      return pair.ready_to_send({attributes.sq_psn, attributes.max_rd_atomic, attributes.timeout,
                                 attributes.retry_cnt, attributes.rnr_retry});
    case IBV_QPS_ERR: return pair.fail();
    default: throw Error(ErrorCode::not_supported, "RST of a queue pair of a card's commands");
  }
}

int CardQp::write(const ibv_send_wr& request) noexcept {
  auto work = work_of(request);
  const auto count = static_cast<std::size_t>(request.num_sge);
  if (!work || request.num_sge < 0 || count > buffers_.size() ||
      (request.send_flags & IBV_SEND_INLINE) != 0) {
    return EINVAL;
  }
  for (std::size_t i = 0; i < count; ++i) {
    const ibv_sge& piece = request.sg_list[i];
    buffers_[i] = {piece.addr, piece.length, piece.lkey};
  }
  work->buffers = buffers_.data();
  work->buffer_count = static_cast<std::uint32_t>(count);
  if (always_signaled_ || (request.send_flags & IBV_SEND_SIGNALED) != 0) {
    work->flags |= wire::kSignaled;
  }
  const std::uint64_t position = sent_.posted;
  const wire::Posted result = wire::post_send(queues_.send, sent_, *work);
  if (result != wire::Posted::done) return result == wire::Posted::full ? ENOMEM : EINVAL;
  requests_[position % requests_.size()] = {request.wr_id, sent_.posted};
  return 0;
}

int CardQp::post_send(ibv_send_wr& first, ibv_send_wr*& bad) noexcept {
  const bool takes = capacity_.max_send_wr != 0 && state == IBV_QPS_RTS;
  int errnum = 0;
  for (ibv_send_wr* request = &first; request != nullptr; request = request->next) {
    errnum = takes ? write(*request) : EINVAL;
    if (errnum == 0) continue;
    bad = request;
    break;
  }
  wire::publish(queues_.send, sent_);
  relay_.relay();
  return errnum;
}

int CardQp::post_receive(ibv_recv_wr& first, ibv_recv_wr*& bad) noexcept {
  const bool takes = capacity_.max_recv_wr != 0 && state != IBV_QPS_RESET;
  int errnum = 0;
  for (ibv_recv_wr* request = &first; request != nullptr; request = request->next) {
    errnum = takes && (request->num_sge == 0 || request->num_sge == 1) ? 0 : EINVAL;
    if (errnum == 0) {
      const ibv_sge piece = request->num_sge == 1 ? *request->sg_list : ibv_sge{};
      const std::uint64_t position = received_.posted;
      const auto posted =
          wire::post_receive(queues_.receive, received_, {piece.addr, piece.length, piece.lkey});
      errnum = posted == wire::Posted::done ? 0 : ENOMEM;
      if (errnum == 0) receive_ids_[position % receive_ids_.size()] = request->wr_id;
    }
    if (errnum == 0) continue;
    bad = request;
    break;
  }
  wire::publish(queues_.receive, received_);
  return errnum;
}

ibv_wc CardQp::finish(const wire::Completion& completion) noexcept {
  ibv_wc told{};
  told.qp_num = number();
  told.status = status_of(completion);
  told.vendor_err = completion.vendor;
  told.byte_len = completion.byte_count;
  if (completion.kind == CqeKind::request || completion.kind == CqeKind::request_error) {
    // The counter has the lower 16 bits of the entry's position, which is one of those under way.
    const auto ahead = static_cast<std::uint16_t>(completion.counter - sent_.completed);
    const std::uint64_t position = sent_.completed + ahead;
    if (position >= sent_.published) {
      told.status = IBV_WC_BAD_RESP_ERR;
      return told;
    }
    const Posted& request = requests_[position % requests_.size()];
    sent_.completed = request.end;
    told.wr_id = request.id;
    told.opcode = opcode_of(completion.opcode);
    return told;
  }
  told.wr_id = receive_ids_[received_.polled++ % receive_ids_.size()];
  told.opcode =
      completion.kind == CqeKind::received_write_with_imm ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV;
  if (completion.kind == CqeKind::received_write_with_imm ||
      completion.kind == CqeKind::received_send_with_imm) {
    told.wc_flags = IBV_WC_WITH_IMM;
    told.imm_data = completion.immediate;
  }
  return told;
}

std::unique_ptr<doca_verbs_cq> make_card_cq(doca_verbs_context& context,
                                            const doca_verbs_cq_attr& attributes) {
  return std::make_unique<CardCq>(context, attributes);
}

std::unique_ptr<doca_verbs_qp> make_card_qp(doca_verbs_context& context,
                                            const doca_verbs_qp_init_attr& attributes) {
  return std::make_unique<CardQp>(context, attributes);
}

}  // namespace offload::doca

using namespace offload::doca;  // NOLINT(google-build-using-namespace): the calls have no namespace
using offload::rdma::mlx5::RegisterKind;

doca_uar::doca_uar(doca_dev& of, RegisterKind kind)
    : device(of), native(of.rdma().device.get()), registers(of.rdma().device, kind) {}

doca_error_t doca_uar_create(doca_dev* dev, doca_uar_allocation_type allocation_type,
                             doca_uar** uar) {
  if (any_null(dev, uar) || allocation_type > DOCA_UAR_ALLOCATION_TYPE_NONCACHE_DEDICATED) {
    return DOCA_ERROR_INVALID_VALUE;
  }
  if (!dev->is_rdma()) return DOCA_ERROR_NOT_SUPPORTED;
  RegisterKind kind = RegisterKind::shared;
  if (allocation_type == DOCA_UAR_ALLOCATION_TYPE_BLUEFLAME) kind = RegisterKind::combining;
  if (allocation_type == DOCA_UAR_ALLOCATION_TYPE_NONCACHE_DEDICATED)
    kind = RegisterKind::dedicated;
  return guarded(__func__, [&] { *uar = new doca_uar(*dev, kind); });
}

doca_error_t doca_uar_destroy(doca_uar* uar) {
  if (uar == nullptr) return DOCA_ERROR_INVALID_VALUE;
  if (is_used(*uar)) return DOCA_ERROR_IN_USE;
  delete uar;
  return DOCA_SUCCESS;
}
