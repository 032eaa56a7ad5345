#include <arpa/inet.h>
#include <infiniband/verbs.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "softcard/preload/device.hpp"
#include "softcard/preload/objects.hpp"

#undef ibv_get_device_list
#undef ibv_query_port
#undef ibv_reg_mr

/// libibverbs' functions: of a device with one port, which has one GID.
using offload::softcard::Device;
using offload::softcard::guarded;
using offload::softcard::guarded_number;

namespace {

ibv_device* device() {
  static ibv_device made = [] {
    ibv_device device{};
    device.node_type = IBV_NODE_CA;
    device.transport_type = IBV_TRANSPORT_IB;
    std::strcpy(device.name, "softcard0");
    std::strcpy(device.dev_name, "uverbs0");
    std::strcpy(device.ibdev_path, "/nowhere/softcard0");
    return device;
  }();
  return &made;
}

ibv_gid_entry only_gid() {
  const auto raw = Device::instance().gid();
  ibv_gid_entry entry{};
  std::copy(raw.begin(), raw.end(), entry.gid.raw);
  entry.port_num = 1;
  entry.gid_type = IBV_GID_TYPE_ROCE_V2;
  return entry;
}

ibv_mr* make_region(ibv_pd* pd, void* address, std::size_t length, std::uint64_t first,
                    unsigned access) {
  return guarded([&] {
    auto made = std::make_unique<ibv_mr>();
    *made = {pd->context, pd, address, length, 0, 0, 0};
    made->lkey = made->rkey =
        Device::instance().add_region(pd->handle, first, address, length, access);
    return made.release();
  });
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

ibv_device** ibv_get_device_list(int* count) {
  if (count != nullptr) *count = 1;
  return new ibv_device* [2] { device(), nullptr };
}
void ibv_free_device_list(ibv_device** list) {
  delete[] list;
}
const char* ibv_get_device_name(ibv_device* of) {
  return of->name;
}

ibv_context* ibv_open_device(ibv_device* of) {
  return guarded([&] {
    auto made = std::make_unique<ibv_context>();
    made->device = of;
    made->cmd_fd = made->async_fd = -1;
    made->num_comp_vectors = 1;
    Device::instance().open();
    return made.release();
  });
}
int ibv_close_device(ibv_context* context) {
  Device::instance().close();
  delete context;
  return 0;
}

int ibv_query_device(ibv_context*, ibv_device_attr* attributes) {
  *attributes = {};
  attributes->max_mr_size = ~std::uint64_t{0};
  attributes->page_size_cap = 4096;
  attributes->vendor_id = 0x02c9;
  attributes->max_qp = 1024;
  attributes->max_qp_wr = 32768;
  attributes->max_sge = 30;
  attributes->max_cq = 2048;
  attributes->max_cqe = 1 << 22;
  attributes->max_mr = 1 << 20;
  attributes->max_pd = 1 << 20;
  attributes->max_qp_rd_atom = 16;
  attributes->max_qp_init_rd_atom = 16;
  attributes->atomic_cap = IBV_ATOMIC_HCA;
  attributes->max_pkeys = 1;
  attributes->phys_port_cnt = 1;
  return 0;
}
int ibv_query_port(ibv_context*, std::uint8_t port, _compat_ibv_port_attr* attributes) {
  if (port != 1) return EINVAL;
  ibv_port_attr whole{};
  whole.state = IBV_PORT_ACTIVE;
  whole.max_mtu = whole.active_mtu = IBV_MTU_4096;
  whole.gid_tbl_len = 1;
  whole.pkey_tbl_len = 1;
  whole.max_msg_sz = 1U << 30;
  whole.link_layer = IBV_LINK_LAYER_ETHERNET;
  // Callers have the whole one, and zero what an old library does not know.
  std::memcpy(attributes, &whole, offsetof(ibv_port_attr, link_layer) + 1);
  return 0;
}
int ibv_query_pkey(ibv_context*, std::uint8_t, int index, __be16* key) {
  if (index != 0) return -1;
  *key = htons(0xffff);
  return 0;
}
int ibv_query_gid(ibv_context*, std::uint8_t port, int index, ibv_gid* gid) {
  if (port != 1 || index != 0) {
    errno = EINVAL;
    return -1;
  }
  *gid = only_gid().gid;
  return 0;
}
int _ibv_query_gid_ex(ibv_context*, std::uint32_t port, std::uint32_t index, ibv_gid_entry* entry,
                      std::uint32_t, std::size_t) {
  if (port != 1 || index != 0) return ENODATA;
  *entry = only_gid();
  return 0;
}
ssize_t _ibv_query_gid_table(ibv_context*, ibv_gid_entry* entries, std::size_t most, std::uint32_t,
                             std::size_t) {
  if (most == 0) return -EINVAL;
  *entries = only_gid();
  return 1;
}

ibv_pd* ibv_alloc_pd(ibv_context* context) {
  return guarded([&] { return new ibv_pd{context, Device::instance().add_domain()}; });
}
int ibv_dealloc_pd(ibv_pd* pd) {
  delete pd;
  return 0;
}

ibv_mr* ibv_reg_mr(ibv_pd* pd, void* address, std::size_t length, int access) {
  return make_region(pd, address, length, reinterpret_cast<std::uint64_t>(address),
                     static_cast<unsigned>(access));
}
ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* address, std::size_t length, std::uint64_t first,
                         unsigned access) {
  return make_region(pd, address, length, first, access);
}
ibv_mr* ibv_reg_dmabuf_mr(ibv_pd*, std::uint64_t, std::size_t, std::uint64_t, int, int) {
  errno = EOPNOTSUPP;  // nothing tells the address of a GPU's memory by its dma-buf
  return nullptr;
}
int ibv_dereg_mr(ibv_mr* region) {
  Device::instance().remove_region(region->lkey);
  delete region;
  return 0;
}

ibv_comp_channel* ibv_create_comp_channel(ibv_context*) {
  errno = EOPNOTSUPP;
  return nullptr;
}
ibv_cq* ibv_create_cq(ibv_context*, int, void*, ibv_comp_channel*, int) {
  errno = EOPNOTSUPP;
  return nullptr;
}
ibv_qp* ibv_create_qp(ibv_pd*, ibv_qp_init_attr*) {
  errno = EOPNOTSUPP;
  return nullptr;
}
ibv_srq* ibv_create_srq(ibv_pd*, ibv_srq_init_attr*) {
  errno = EOPNOTSUPP;
  return nullptr;
}
}
#pragma GCC visibility pop
