#include "bench/rdma_emulator/nothing_device.hpp"

#include <infiniband/verbs.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <vector>

#undef ibv_get_device_list
#undef ibv_query_port
#undef ibv_reg_mr

namespace {

ibv_device device{};
ibv_device* device_list[2] = {&device, nullptr};

/// A ring of the wr_ids that were signaled and are not polled.
std::vector<std::uint64_t> done(1U << 20);
std::uint64_t first = 0;
std::uint64_t end = 0;

int post_send(ibv_qp*, ibv_send_wr* request, ibv_send_wr**) {
  for (; request != nullptr; request = request->next) {
    if ((request->send_flags & IBV_SEND_SIGNALED) != 0) done[end++ % done.size()] = request->wr_id;
  }
  return 0;
}

int poll_cq(ibv_cq*, int most, ibv_wc* into) {
  int taken = 0;
  for (; taken < most && first != end; ++taken) {
    into[taken].wr_id = done[first++ % done.size()];
    into[taken].status = IBV_WC_SUCCESS;
  }
  return taken;
}

int post_recv(ibv_qp*, ibv_recv_wr*, ibv_recv_wr**) {
  return 0;
}

int req_notify_cq(ibv_cq*, int) {
  return 0;
}

template <class Object>
int destroy(Object* object) {
  delete object;
  return 0;
}

}  // namespace

extern "C" {

ibv_device** ibv_get_device_list(int* count) {
  std::snprintf(device.name, sizeof device.name, "%s", offload::bench::kNothingDevice);
  device.transport_type = IBV_TRANSPORT_IB;
  *count = 1;
  return device_list;
}
void ibv_free_device_list(ibv_device**) {}

ibv_context* ibv_open_device(ibv_device* opened) {
  auto* const context = new ibv_context{};
  context->device = opened;
  context->ops.post_send = post_send;
  context->ops.post_recv = post_recv;
  context->ops.poll_cq = poll_cq;
  context->ops.req_notify_cq = req_notify_cq;
  return context;
}
int ibv_close_device(ibv_context* context) {
  return destroy(context);
}
int ibv_query_device(ibv_context*, ibv_device_attr* attributes) {
  *attributes = {};
  attributes->phys_port_cnt = 1;
  return 0;
}
int ibv_query_port(ibv_context*, std::uint8_t, _compat_ibv_port_attr* into) {
  auto& attributes = *reinterpret_cast<ibv_port_attr*>(into);
  attributes.state = IBV_PORT_ACTIVE;
  attributes.active_mtu = IBV_MTU_4096;
  attributes.link_layer = IBV_LINK_LAYER_ETHERNET;
  return 0;
}
ssize_t _ibv_query_gid_table(ibv_context*, ibv_gid_entry* entries, std::size_t, std::uint32_t,
                             std::size_t) {
  entries[0] = {};
  entries[0].port_num = 1;
  entries[0].gid_type = IBV_GID_TYPE_ROCE_V2;
  entries[0].gid.raw[15] = 1;
  return 1;
}

ibv_pd* ibv_alloc_pd(ibv_context* context) {
  return new ibv_pd{context, 0};
}
int ibv_dealloc_pd(ibv_pd* domain) {
  return destroy(domain);
}
ibv_mr* ibv_reg_mr_iova2(ibv_pd* domain, void* address, std::size_t length, std::uint64_t,
                         unsigned) {
  return new ibv_mr{domain->context, domain, address, length, 0, 1, 2};
}
ibv_mr* ibv_reg_mr(ibv_pd* domain, void* address, std::size_t length, int) {
  return ibv_reg_mr_iova2(domain, address, length, 0, 0);
}
int ibv_dereg_mr(ibv_mr* region) {
  return destroy(region);
}

ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  return new ibv_comp_channel{context, ::eventfd(0, EFD_CLOEXEC), 0};
}
int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  ::close(channel->fd);
  return destroy(channel);
}
int ibv_get_cq_event(ibv_comp_channel*, ibv_cq**, void**) {
  errno = EAGAIN;
  return -1;
}
void ibv_ack_cq_events(ibv_cq*, unsigned) {}

ibv_cq* ibv_create_cq(ibv_context* context, int depth, void*, ibv_comp_channel* channel, int) {
  auto* const queue = new ibv_cq{};
  queue->context = context;
  queue->channel = channel;
  queue->cqe = depth;
  return queue;
}
int ibv_destroy_cq(ibv_cq* queue) {
  return destroy(queue);
}

ibv_qp* ibv_create_qp(ibv_pd* domain, ibv_qp_init_attr*) {
  static std::uint32_t number = 100;
  auto* const pair = new ibv_qp{};
  pair->context = domain->context;
  pair->qp_num = number++;
  return pair;
}
int ibv_modify_qp(ibv_qp*, ibv_qp_attr*, int) {
  return 0;
}
int ibv_destroy_qp(ibv_qp* pair) {
  return destroy(pair);
}
}
