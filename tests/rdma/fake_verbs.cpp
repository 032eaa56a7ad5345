#include "tests/rdma/fake_verbs.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "tests/rdma/masked_attributes.hpp"

#undef ibv_get_device_list
#undef ibv_query_port
#undef ibv_reg_mr

namespace offload::rdma::test {
namespace {

FakeVerbs state;
ibv_device native_device{};
ibv_device* device_list[2] = {&native_device, nullptr};

bool fails(const char* call) {
  const std::lock_guard lock(fake_mutex());
  const auto number = static_cast<int>(state.calls.size());
  state.calls.emplace_back(call);
  if (number != state.fail_at && state.fail_call != call) return false;
  errno = state.fail_with;
  return true;
}

template <class Object>
Object* make(const char* kind) {
  if (fails(kind)) return nullptr;
  ++state.open[kind];
  return new Object{};
}

template <class Object>
int end(const char* kind, Object* object) {
  --state.open[kind];
  delete object;
  return 0;
}

int positive(const char* call) {
  return fails(call) ? state.fail_with : 0;
}

void make_pipe(int (&ends)[2]) {
  if (::pipe2(ends, O_CLOEXEC) != 0) ends[0] = ends[1] = -1;
}

bool take_byte(int fd) {
  char byte = 0;
  return ::read(fd, &byte, 1) == 1;
}

void put_byte(int fd) {
  [[maybe_unused]] const auto written = ::write(fd, "x", 1);
}

Posted posted(std::uint64_t id, const ibv_sge* list, int count) {
  Posted result{{}, {list, list + count}, {}};
  result.send.wr_id = id;
  return result;
}

ibv_wc told(const FakeQueuePair& queue, std::uint64_t id, ibv_wc_status status) {
  ibv_wc completion{};
  completion.wr_id = id;
  completion.status = status;
  completion.vendor_err = status == IBV_WC_SUCCESS ? 0 : 0x88;
  completion.qp_num = queue.native.qp_num;
  return completion;
}

int poll_cq(ibv_cq* cq, int count, ibv_wc* into) {
  const std::lock_guard lock(fake_mutex());
  if (state.on_poll) state.on_poll();
  if (fails("poll_cq")) return -1;
  int taken = 0;
  std::erase_if(state.completions, [&](const ibv_wc& told) {
    const bool takes = taken < count && state.is_for(told, cq);
    if (takes) into[taken++] = told;
    return takes;
  });
  return taken;
}

int req_notify_cq(ibv_cq*, int) {
  ++state.arms;
  return positive("req_notify_cq");
}

int post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad) {
  const std::lock_guard lock(fake_mutex());
  auto& queue = *reinterpret_cast<FakeQueuePair*>(qp);
  ++state.doorbells;
  for (; wr != nullptr; wr = wr->next) {
    *bad = wr;
    if (fails("post_send")) return state.fail_with;
    queue.sends.push_back(posted(wr->wr_id, wr->sg_list, wr->num_sge));
    Posted& added = queue.sends.back();
    added.send = *wr;
    if ((wr->send_flags & IBV_SEND_INLINE) == 0) continue;
    for (const ibv_sge& piece : added.pieces) {
      const auto* const from = std::bit_cast<const std::byte*>(piece.addr);
      added.inlined.insert(added.inlined.end(), from, from + piece.length);
    }
  }
  return 0;
}

int post_recv(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  auto& queue = *reinterpret_cast<FakeQueuePair*>(qp);
  ++state.doorbells;
  for (; wr != nullptr; wr = wr->next) {
    *bad = wr;
    if (fails("post_recv")) return state.fail_with;
    queue.receives.push_back(posted(wr->wr_id, wr->sg_list, wr->num_sge));
  }
  return 0;
}

int post_srq_recv(ibv_srq*, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  const std::lock_guard lock(fake_mutex());
  ++state.doorbells;
  for (; wr != nullptr; wr = wr->next) {
    *bad = wr;
    if (fails("post_srq_recv")) return state.fail_with;
    state.shared_receives.push_back(posted(wr->wr_id, wr->sg_list, wr->num_sge));
  }
  return 0;
}

/// Reports all posted requests, signalled or not, as a device does.
void flush(FakeQueuePair& queue) {
  while (!queue.sends.empty()) state.finish_send(queue, IBV_WC_WR_FLUSH_ERR);
  while (!queue.receives.empty()) state.finish_receive(queue, told(queue, 0, IBV_WC_WR_FLUSH_ERR));
}

}  // namespace

std::recursive_mutex& fake_mutex() {
  static std::recursive_mutex mutex;
  return mutex;
}

FakeVerbs& fake() {
  return state;
}

void reset_fake() {
  for (int* ends : {state.completion_pipe, state.async_pipe}) {
    if (ends[0] >= 0) ::close(ends[0]);
    if (ends[1] >= 0) ::close(ends[1]);
  }
  state = {};
  make_pipe(state.completion_pipe);
  make_pipe(state.async_pipe);
  native_device = {};
  native_device.transport_type = IBV_TRANSPORT_IB;
  std::strcpy(native_device.name, "fake0");
  std::strcpy(native_device.ibdev_path, "/nowhere/fake0");
  state.device.max_qp = 100;
  state.device.max_qp_wr = 1000;
  state.device.max_sge = 8;
  state.device.max_cqe = 10000;
  state.device.max_qp_rd_atom = 16;
  state.device.max_qp_init_rd_atom = 8;
  state.device.atomic_cap = IBV_ATOMIC_HCA;
  state.device.phys_port_cnt = 1;
  state.port.state = IBV_PORT_ACTIVE;
  state.port.active_mtu = IBV_MTU_1024;
  state.port.link_layer = IBV_LINK_LAYER_ETHERNET;
  ibv_gid_entry gid{};
  gid.gid_index = 1;
  gid.port_num = 1;
  gid.gid_type = IBV_GID_TYPE_ROCE_V2;
  gid.gid = {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1}};
  state.gids = {gid};
}

int FakeVerbs::open_objects() const {
  int count = 0;
  for (const auto& [kind, number] : open) count += number;
  return count;
}

void FakeVerbs::finish_send(FakeQueuePair& queue, ibv_wc_status status) {
  const Posted done = queue.sends.front();
  queue.sends.pop_front();
  const bool signalled = (done.send.send_flags & IBV_SEND_SIGNALED) != 0;
  if (signalled || status != IBV_WC_SUCCESS) {
    completions.push_back(told(queue, done.send.wr_id, status));
  }
}

void FakeVerbs::finish_receive(FakeQueuePair& queue, ibv_wc completion) {
  completion.wr_id = queue.receives.front().send.wr_id;
  completion.qp_num = queue.native.qp_num;
  completion.opcode = static_cast<ibv_wc_opcode>(completion.opcode | IBV_WC_RECV);
  queue.receives.pop_front();
  completions.push_back(completion);
}

void FakeVerbs::ring() {
  put_byte(completion_pipe[1]);
}

void FakeVerbs::add_async_event(ibv_async_event event) {
  async_events.push_back(event);
  put_byte(async_pipe[1]);
}

}  // namespace offload::rdma::test

using namespace offload::rdma::test;

extern "C" {

ibv_device** ibv_get_device_list(int* count) {
  if (fails("ibv_get_device_list")) return nullptr;
  *count = state.devices;
  return device_list;
}
void ibv_free_device_list(ibv_device**) {}

ibv_context* ibv_open_device(ibv_device* device) {
  auto* const extended = make<verbs_context>("ibv_open_device");
  if (extended == nullptr) return nullptr;
  extended->sz = sizeof *extended;
  if (state.extend != nullptr) state.extend(*extended);
  ibv_context* const context = &extended->context;
  context->abi_compat = __VERBS_ABI_IS_EXTENDED;
  context->device = device;
  context->async_fd = state.async_pipe[0];
  context->ops.poll_cq = poll_cq;
  context->ops.req_notify_cq = req_notify_cq;
  context->ops.post_send = post_send;
  context->ops.post_recv = post_recv;
  context->ops.post_srq_recv = post_srq_recv;
  return context;
}
int ibv_close_device(ibv_context* context) {
  return end("ibv_open_device", verbs_get_ctx(context));
}

int ibv_query_device(ibv_context*, ibv_device_attr* attributes) {
  *attributes = state.device;
  return positive("ibv_query_device");
}
int ibv_query_port(ibv_context*, std::uint8_t, _compat_ibv_port_attr* attributes) {
  auto& port = *reinterpret_cast<ibv_port_attr*>(attributes);
  port = state.port;
  port.pkey_tbl_len = static_cast<std::uint16_t>(state.pkeys.size());
  return positive("ibv_query_port");
}
int ibv_query_pkey(ibv_context*, std::uint8_t, int index, __be16* key) {
  *key = htons(state.pkeys.at(static_cast<std::size_t>(index)));
  return positive("ibv_query_pkey");
}
ssize_t _ibv_query_gid_table(ibv_context*, ibv_gid_entry* entries, std::size_t most, std::uint32_t,
                             std::size_t) {
  if (fails("ibv_query_gid_table")) return -state.fail_with;
  const std::size_t count = std::min(most, state.gids.size());
  std::copy_n(state.gids.begin(), count, entries);
  return static_cast<ssize_t>(count);
}

ibv_pd* ibv_alloc_pd(ibv_context* context) {
  auto* const pd = make<ibv_pd>("ibv_alloc_pd");
  if (pd != nullptr) pd->context = context;
  return pd;
}
int ibv_dealloc_pd(ibv_pd* pd) {
  return end("ibv_alloc_pd", pd);
}

ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* address, std::size_t length, std::uint64_t, unsigned) {
  auto* const mr = make<ibv_mr>("ibv_reg_mr");
  if (mr != nullptr) {
    *mr = {pd->context, pd, address, length, 0, 11, 22};
    if (state.make_key) mr->lkey = mr->rkey = state.make_key(address, length);
  }
  return mr;
}
ibv_mr* ibv_reg_mr(ibv_pd* pd, void* address, std::size_t length, int) {
  return ibv_reg_mr_iova2(pd, address, length, 0, 0);
}
ibv_mr* ibv_reg_dmabuf_mr(ibv_pd* pd, std::uint64_t, std::size_t length, std::uint64_t, int fd,
                          int) {
  if (fails("ibv_reg_dmabuf_mr")) return nullptr;
  if (fd < 0) {
    errno = EBADF;
    return nullptr;
  }
  ++state.open["ibv_reg_mr"];
  return new ibv_mr{pd->context, pd, nullptr, length, 0, 33, 44};
}
int ibv_dereg_mr(ibv_mr* mr) {
  return end("ibv_reg_mr", mr);
}

ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  auto* const channel = make<ibv_comp_channel>("ibv_create_comp_channel");
  if (channel != nullptr) *channel = {context, state.completion_pipe[0], 0};
  return channel;
}
int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  return end("ibv_create_comp_channel", channel);
}
int ibv_get_cq_event(ibv_comp_channel*, ibv_cq** cq, void** user) {
  *cq = state.rung;
  *user = *cq == nullptr ? nullptr : (*cq)->cq_context;
  return take_byte(state.completion_pipe[0]) ? 0 : -1;
}
void ibv_ack_cq_events(ibv_cq*, unsigned count) {
  state.acknowledged += static_cast<int>(count);
}

ibv_cq* ibv_create_cq(ibv_context* context, int depth, void* user, ibv_comp_channel* channel, int) {
  auto* const cq = make<ibv_cq>("ibv_create_cq");
  if (cq == nullptr) return nullptr;
  cq->context = context;
  cq->channel = channel;
  cq->cq_context = user;
  cq->cqe = depth;
  return cq;
}
int ibv_destroy_cq(ibv_cq* cq) {
  return end("ibv_create_cq", cq);
}

ibv_srq* ibv_create_srq(ibv_pd* pd, ibv_srq_init_attr* initial) {
  state.shared_attributes = initial->attr;
  auto* const srq = make<ibv_srq>("ibv_create_srq");
  if (srq != nullptr) srq->context = pd->context;
  return srq;
}
int ibv_query_srq(ibv_srq*, ibv_srq_attr* attributes) {
  *attributes = state.shared_attributes;
  return positive("ibv_query_srq");
}
int ibv_modify_srq(ibv_srq*, ibv_srq_attr* attributes, int) {
  state.shared_attributes.srq_limit = attributes->srq_limit;
  return positive("ibv_modify_srq");
}
int ibv_destroy_srq(ibv_srq* srq) {
  return end("ibv_create_srq", srq);
}

ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* attributes) {
  const std::lock_guard lock(fake_mutex());
  auto* const queue = make<FakeQueuePair>("ibv_create_qp");
  if (queue == nullptr) return nullptr;
  queue->native.context = pd->context;
  queue->native.qp_num = state.first_number + static_cast<std::uint32_t>(state.queue_pairs.size());
  queue->native.qp_type = attributes->qp_type;
  attributes->cap.max_inline_data += 16;  // more than was asked for
  queue->initial = *attributes;
  state.queue_pairs.push_back(queue);
  return &queue->native;
}
int ibv_modify_qp(ibv_qp* qp, ibv_qp_attr* attributes, int mask) {
  const std::lock_guard lock(fake_mutex());
  auto& queue = *reinterpret_cast<FakeQueuePair*>(qp);
  if (fails("ibv_modify_qp")) return state.fail_with;
  queue.attributes = masked(*attributes, mask);
  queue.mask = mask;
  queue.modified.push_back(queue.attributes);
  if (attributes->qp_state == IBV_QPS_ERR) flush(queue);
  if (attributes->qp_state == IBV_QPS_RESET) {
    queue.sends.clear();
    queue.receives.clear();
  }
  if (state.on_modify) state.on_modify(queue);
  return 0;
}
int ibv_query_qp(ibv_qp* qp, ibv_qp_attr* attributes, int, ibv_qp_init_attr* initial) {
  *attributes = reinterpret_cast<FakeQueuePair*>(qp)->attributes;
  *initial = reinterpret_cast<FakeQueuePair*>(qp)->initial;
  return positive("ibv_query_qp");
}
int ibv_destroy_qp(ibv_qp* qp) {
  const std::lock_guard lock(fake_mutex());
  if (state.on_destroy) state.on_destroy(*reinterpret_cast<FakeQueuePair*>(qp));
  // Completions that were not taken are gone, also those of shared receives, as with mlx5.
  std::erase_if(state.completions, [&](const ibv_wc& told) { return told.qp_num == qp->qp_num; });
  std::erase(state.queue_pairs, reinterpret_cast<FakeQueuePair*>(qp));
  return end("ibv_create_qp", reinterpret_cast<FakeQueuePair*>(qp));
}

ibv_ah* ibv_create_ah(ibv_pd* pd, ibv_ah_attr* path) {
  state.path = *path;
  auto* const ah = make<ibv_ah>("ibv_create_ah");
  if (ah != nullptr) ah->context = pd->context;
  return ah;
}
int ibv_destroy_ah(ibv_ah* ah) {
  return end("ibv_create_ah", ah);
}

int ibv_get_async_event(ibv_context*, ibv_async_event* event) {
  if (!take_byte(state.async_pipe[0])) return -1;
  *event = state.async_events.front();
  state.async_events.pop_front();
  return 0;
}
void ibv_ack_async_event(ibv_async_event*) {
  ++state.acknowledged;
}

const char* ibv_wc_status_str(ibv_wc_status) {
  return "a status";
}
const char* ibv_event_type_str(ibv_event_type) {
  return "an event";
}
}
