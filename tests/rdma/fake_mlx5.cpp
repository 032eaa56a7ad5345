#include "tests/rdma/fake_mlx5.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <memory>
#include <vector>

#include "rdma/queues/queue_memory.hpp"
#include "tests/rdma/fake_devx.hpp"

namespace offload::rdma::test {
namespace {

constexpr std::size_t kPage = 4096;

struct Rings {
  mlx5dv_qp pair{};
  mlx5dv_cq completions{};
};

struct alignas(kPage) Page {
  std::byte bytes[kPage];
};

FakeMlx5 card;
std::map<const void*, Rings> rings;  ///< of a queue pair or a completion queue
std::map<ibv_pd*, ibv_parent_domain_init_attr> parents;
std::vector<std::unique_ptr<Page[]>> own_memory;
mlx5_wqe_av vector_of_handle;

ibv_td* alloc_td(ibv_context* context, ibv_td_init_attr*) {
  if (fake().fail_call == "alloc_td") {
    errno = fake().fail_with;
    return nullptr;
  }
  ++fake().open["td"];
  return new ibv_td{context};
}

int dealloc_td(ibv_td* thread) {
  --fake().open["td"];
  delete thread;
  return 0;
}

ibv_pd* alloc_parent_domain(ibv_context* context, ibv_parent_domain_init_attr* attributes) {
  ibv_pd* const domain = ibv_alloc_pd(context);
  if (domain == nullptr) return nullptr;
  card.has_thread_domain = attributes->td != nullptr;
  parents[domain] = *attributes;
  return domain;
}

std::size_t pages(std::size_t bytes) {
  return (bytes + kPage - 1) / kPage;
}

/// Takes memory from the parent domain; returns null with errno if that has none.
std::byte* take(ibv_pd* domain, std::size_t size, std::size_t alignment, std::uint64_t type) {
  if (!card.asks_domain) {
    own_memory.push_back(std::make_unique<Page[]>(pages(size)));
    return own_memory.back()[0].bytes;
  }
  const auto& parent = parents.at(domain);
  return static_cast<std::byte*>(parent.alloc(domain, parent.pd_context, size, alignment, type));
}

kernels::rdma::CompletionQueue completions_of(const ibv_cq* cq) {
  const mlx5dv_cq& made = rings.at(cq).completions;
  return {static_cast<kernels::rdma::Cqe*>(made.buf),
          static_cast<std::uint32_t>(std::countr_zero(made.cqe_cnt)), made.dbrec};
}

__be32* take_record(ibv_pd* domain) {
  return reinterpret_cast<__be32*>(take(domain, 8, 8, MLX5DV_RES_TYPE_DBR));
}

}  // namespace

FakeMlx5& fake_mlx5() {
  return card;
}

bool is_cards(const FakeQueuePair& queue) {
  return rings.contains(&queue.native) && rings.at(&queue.native).pair.sq.buf != nullptr;
}

void forget(const FakeQueuePair& queue) {
  rings.erase(&queue.native);
}

QueuePairMemory memory_at_card(const FakeQueuePair& queue) {
  const mlx5dv_qp& made = rings.at(&queue.native).pair;
  QueuePairMemory memory{};
  memory.send.ring = {static_cast<kernels::rdma::Segment*>(made.sq.buf), made.sq.wqe_cnt};
  memory.send.number = queue.native.qp_num;
  memory.send.record = made.dbrec + MLX5_SND_DBR;
  memory.send.doorbell = static_cast<std::uint64_t*>(made.bf.reg);
  memory.send.completions = completions_of(queue.initial.send_cq);
  memory.receive.ring = static_cast<kernels::rdma::Segment*>(made.rq.buf);
  memory.receive.entries = made.rq.wqe_cnt;
  memory.receive.record = made.dbrec + MLX5_RCV_DBR;
  memory.receive.completions = completions_of(queue.initial.recv_cq);
  return memory;
}

void reset_fake_mlx5() {
  card = {};
  card.drives = true;
  rings.clear();
  parents.clear();
  own_memory.clear();
  fake().extend = [](verbs_context& context) {
    context.alloc_td = alloc_td;
    context.dealloc_td = dealloc_td;
    context.alloc_parent_domain = alloc_parent_domain;
  };
}

}  // namespace offload::rdma::test

using namespace offload::rdma::test;

extern "C" {

bool mlx5dv_is_supported(ibv_device*) {
  return card.drives;
}

ibv_cq_ex* mlx5dv_create_cq(ibv_context* context, ibv_cq_init_attr_ex* attributes,
                            mlx5dv_cq_init_attr* extra) {
  const std::uint32_t places = std::bit_ceil(attributes->cqe + 1);
  mlx5dv_cq made{};
  made.cqe_cnt = places;
  made.cqe_size = extra->cqe_size;
  made.buf = take(attributes->parent_domain, pages(std::size_t{places} * 64) * kPage, kPage,
                  MLX5DV_RES_TYPE_CQ);
  if (made.buf == nullptr) return nullptr;
  made.dbrec = take_record(attributes->parent_domain);
  if (made.dbrec == nullptr) return nullptr;
  auto* const entries = static_cast<mlx5_cqe64*>(made.buf);
  for (std::uint32_t i = 0; i < places; ++i) entries[i].op_own = MLX5_CQE_INVALID << 4;
  ibv_cq* const cq = ibv_create_cq(context, static_cast<int>(attributes->cqe), nullptr, nullptr, 0);
  if (cq != nullptr) rings[cq].completions = made;
  return reinterpret_cast<ibv_cq_ex*>(cq);
}

ibv_qp* mlx5dv_create_qp(ibv_context*, ibv_qp_init_attr_ex* attributes,
                         mlx5dv_qp_init_attr* extra) {
  card.pair = *extra;
  const ibv_qp_cap& asked = attributes->cap;
  const bool is_raw = attributes->qp_type == IBV_QPT_RAW_PACKET;
  const std::uint32_t longest_request = is_raw ? 64 : 256;
  const std::uint32_t receive_stride = std::bit_ceil(asked.max_recv_sge) * 16;
  const std::uint32_t receives =
      std::max(std::bit_ceil(asked.max_recv_wr) * receive_stride, 64U) / card.divisor;
  const std::uint32_t sends = std::bit_ceil(asked.max_send_wr * longest_request) / card.divisor;
  const std::size_t alignment =
      is_raw ? kPage
             : std::max<std::size_t>(
                   64, std::bit_ceil(pages(std::size_t{receives} + sends) * kPage) / 64);
  const std::size_t first = is_raw ? receives : receives + sends;
  const std::size_t size = (first + alignment - 1) / alignment * alignment;
  std::byte* const buffer = take(attributes->pd, size, alignment, MLX5DV_RES_TYPE_QP);
  if (buffer == nullptr) return nullptr;
  std::byte* send_buffer = buffer + receives;
  if (is_raw) send_buffer = take(attributes->pd, pages(sends) * kPage, kPage, MLX5DV_RES_TYPE_QP);
  if (send_buffer == nullptr) return nullptr;
  mlx5dv_qp made{};
  made.dbrec = take_record(attributes->pd);
  if (made.dbrec == nullptr) return nullptr;
  made.rq = {buffer, receives / receive_stride, receive_stride};
  made.sq = {send_buffer, sends / 64, 64};
  made.bf.size = card.combines_writes ? 256 : 0;
  made.bf.reg = &card.registers[card.made++ % std::size(card.registers)];
  ibv_qp_init_attr plain{};
  plain.qp_type = attributes->qp_type;
  plain.send_cq = attributes->send_cq;
  plain.recv_cq = attributes->recv_cq;
  ibv_qp* const qp = ibv_create_qp(attributes->pd, &plain);
  if (qp != nullptr) rings[qp].pair = made;
  return qp;
}

int mlx5dv_init_obj(mlx5dv_obj* object, std::uint64_t kind) {
  if (fake().fail_call == "mlx5dv_init_obj") return fake().fail_with;
  if ((kind & MLX5DV_OBJ_QP) != 0) *object->qp.out = rings.at(object->qp.in).pair;
  if ((kind & MLX5DV_OBJ_CQ) != 0) *object->cq.out = rings.at(object->cq.in).completions;
  if ((kind & MLX5DV_OBJ_PD) != 0) object->pd.out->pdn = FakeDevx::kDomain;
  if ((kind & MLX5DV_OBJ_AH) != 0) {
    std::ranges::copy(FakeDevx::kPeerMac, vector_of_handle.rmac);
    object->ah.out->av = &vector_of_handle;
  }
  return 0;
}
}
