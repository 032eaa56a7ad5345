#include "rdma/mlx5/card_queue_pair.hpp"

#include <unistd.h>

#include <algorithm>

#include "core/log.hpp"
#include "rdma/mlx5/card.hpp"

namespace offload::rdma::mlx5 {
namespace {

using core::ErrorCode;

/// libmlx5 counts a request as its longest, a memory window's: four blocks. One of a raw packet has
/// a block.
constexpr std::uint32_t kBlocksOfRequest = 4;
/// A ring has a request's blocks, or as many receives, at least.
constexpr std::uint32_t kLeastEntries = 4;
constexpr const char* kMakeThreadDomain = "make a thread domain";

void* take_from_arena(ibv_pd*, void* arena, std::size_t size, std::size_t alignment,
                      std::uint64_t) {
  void* const piece = static_cast<Arena*>(arena)->take(size, alignment);
  if (piece == nullptr) errno = ENOMEM;
  return piece;
}

void leave_in_arena(ibv_pd*, void*, void*, std::uint64_t) {}

/// Returns whether the device refuses a register, and other registers may still work.
bool is_refusal(int errnum) {
  return errnum == EOPNOTSUPP || errnum == EPERM || errnum == EACCES;
}

void check_memory(const SeenMemory& memory, const QueueSizes& sizes) {
  const std::size_t needed = arena_bytes(sizes);
  if (memory.bytes.size() < needed) {
    throw core::Error(ErrorCode::no_memory, "queues need " + std::to_string(needed) +
                                                " bytes; available are " +
                                                std::to_string(memory.bytes.size()));
  }
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  if (reinterpret_cast<std::uintptr_t>(memory.bytes.data()) % page != 0) {
    throw core::Error(ErrorCode::invalid_value, "memory of queues must begin at a page");
  }
}

/// `object` names the one of the two that is queried.
void init(mlx5dv_obj object, std::uint64_t kind, const char* what) {
  check(mlx5dv_init_obj(&object, kind), std::string("ask libmlx5 about ") + what);
}

}  // namespace

int CardQueuePair::end_thread_domain(ibv_td* domain) {
  return ibv_dealloc_td(domain);
}

CardQueuePair::CardQueuePair(const DeviceContext& device, const ProtectionDomain& domain,
                             const QueueSizes& sizes, SeenMemory memory, CardTraffic traffic)
    : memory_(std::move(memory)), arena_(memory_.bytes) {
  require_card(device);
  check_memory(memory_, sizes);
  const int refused = make_thread_domain(device.get());
  ibv_parent_domain_init_attr parent{};
  parent.pd = domain.get();
  parent.td = thread_.get();
  parent.comp_mask =
      IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
  parent.alloc = take_from_arena;
  parent.free = leave_in_arena;
  parent.pd_context = &arena_;
  parent_ = {check_pointer(ibv_alloc_parent_domain(device.get(), &parent), "make a parent domain"),
             "a parent domain"};
  sends_ = make_completions(device.get(), std::max(sizes.send_blocks, kLeastEntries));
  receives_ = make_completions(device.get(), std::max(sizes.receives, kLeastEntries));
  make_pair(device.get(), sizes, traffic);
  const NativeQueues native = ask_libmlx5();
  host_ = handles_of(native, arena_);
  combines_writes_ = native.pair.bf.size != 0;  // 0: the page is not write-combining
  // Several queue pairs may share the register: then each doorbell must be a single store.
  if (combines_writes_) check(refused, kMakeThreadDomain);
  if (refused != 0) why_refused_ = core::describe_errno(refused);
  if (host_.send.ring.blocks < sizes.send_blocks || host_.receive.entries < sizes.receives) {
    throw core::Error(ErrorCode::not_supported, "libmlx5 made a smaller " + pair_->described());
  }
  card_register_ = host_.send.doorbell;
  choose_ringer();
  if (traffic == CardTraffic::messages) return;
  // libmlx5 writes the record of receives at this step, so it must come before the first post.
  pair_->initialize();
  pair_->ready_to_receive();
  pair_->ready_to_send();
}

/// A thread domain has a separate register, with write combining. Without one libmlx5 gives the
/// queue pair a register of the context. Returns the errno of a refusal, or 0.
int CardQueuePair::make_thread_domain(ibv_context* context) {
  ibv_td_init_attr none{};
  ibv_td* const made = ibv_alloc_td(context, &none);
  const int refused = made == nullptr ? errno : 0;
  if (!is_refusal(refused)) check(refused, kMakeThreadDomain);
  if (made != nullptr) thread_ = {made, "a thread domain"};
  return refused;
}

CardQueuePair::CompletionHandle CardQueuePair::make_completions(ibv_context* context,
                                                                std::uint32_t places) {
  ibv_cq_init_attr_ex attributes{};
  attributes.cqe = places - 1;  // libmlx5 adds one, and takes the next power of two
  attributes.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
  attributes.parent_domain = parent_.get();
  mlx5dv_cq_init_attr card{};
  card.comp_mask = MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE;
  card.cqe_size = sizeof(kernels::rdma::Cqe);
  // The card keeps looking whether it would overrun the queue: the consumer's record is kept, so
  // that a fault of an owner ends the queue instead of its completions.
  ibv_cq_ex* const queue = mlx5dv_create_cq(context, &attributes, &card);
  return {ibv_cq_ex_to_cq(check_pointer(queue, "make a completion queue")), "a completion queue"};
}

void CardQueuePair::make_pair(ibv_context* context, const QueueSizes& sizes, CardTraffic traffic) {
  const QpType type = traffic == CardTraffic::messages ? QpType::rc : QpType::raw_packet;
  const std::uint32_t blocks = type == QpType::rc ? kBlocksOfRequest : 1;
  ibv_qp_init_attr_ex attributes{};
  attributes.qp_type = to_native(type);
  attributes.send_cq = sends_.get();
  attributes.recv_cq = receives_.get();
  attributes.comp_mask = IBV_QP_INIT_ATTR_PD;
  attributes.pd = parent_.get();
  attributes.cap.max_send_wr = std::max(sizes.send_blocks / blocks, 1U);
  attributes.cap.max_recv_wr = sizes.receives;
  attributes.cap.max_send_sge = 1;
  attributes.cap.max_recv_sge = 1;  // so that a receive is one segment
  mlx5dv_qp_init_attr card{};
  card.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS;
  // A short message would lie in its completion, where kernels/rdma does not look for it.
  card.create_flags = MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE;
  if (traffic == CardTraffic::frames_and_own) {
    card.create_flags |= MLX5DV_QP_CREATE_TIR_ALLOW_SELF_LOOPBACK_UC;
  }
  ibv_qp* const made = mlx5dv_create_qp(context, &attributes, &card);
  if (made == nullptr && errno == EPERM && type == QpType::raw_packet) {
    throw core::Error(ErrorCode::not_permitted,
                      "make a queue pair for raw packets: CAP_NET_RAW is missing (run as root, or "
                      "give the program setcap cap_net_raw+ep)",
                      {core::Cause::Domain::system, EPERM});
  }
  pair_.emplace(QueuePair::adopt(check_pointer(made, "make a queue pair"), type, attributes.cap));
}

NativeQueues CardQueuePair::ask_libmlx5() {
  NativeQueues native;
  native.number = pair_->qp_num();
  mlx5dv_obj object{};
  object.qp = {pair_->get(), &native.pair};
  init(object, MLX5DV_OBJ_QP, "a queue pair");
  object.cq = {sends_.get(), &native.sends};
  init(object, MLX5DV_OBJ_CQ, "a completion queue");
  object.cq = {receives_.get(), &native.receives};
  init(object, MLX5DV_OBJ_CQ, "a completion queue");
  return native;
}

void CardQueuePair::choose_ringer() {
  auto* const word = static_cast<std::uint64_t*>(arena_.take(sizeof(std::uint64_t), 1));
  if (word == nullptr) throw core::Error(ErrorCode::no_memory, "no memory for the doorbell's word");
  relay_.emplace(word, card_register_);
  host_.send.doorbell = word;
  if (memory_.device_address == nullptr) return;  // for threads, or a GPU that comes later
  std::string why = "the card's register cannot be mapped";
  try {
    if (memory_.map_register) {
      device_doorbell_ = static_cast<std::uint64_t*>(memory_.map_register(card_register_));
    }
  } catch (const core::Error& error) {
    why = error.what();
  }
  if (ringer() == DoorbellRinger::gpu) {
    core::log_info("{}: the GPU rings the doorbell", pair_->described());
  } else {
    core::log_info("{}: a thread rings the doorbell, because {}", pair_->described(), why);
  }
}

QueuePairMemory CardQueuePair::device() const {
  if (memory_.device_address == nullptr) {
    core::throw_bad_state(pair_->described(), "unknown to any GPU", "be used by one");
  }
  QueuePairMemory queues = as_seen_at(host_, memory_.bytes.data(), memory_.device_address);
  if (device_doorbell_ != nullptr) queues.send.doorbell = device_doorbell_;
  return queues;
}

}  // namespace offload::rdma::mlx5
