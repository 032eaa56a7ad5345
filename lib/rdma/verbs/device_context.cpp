#include "rdma/verbs/device_context.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace offload::rdma {
namespace {

using core::Error;
using core::ErrorCode;

ibv_context* open(std::string_view name) {
  int count = 0;
  const std::unique_ptr<ibv_device*, decltype(&ibv_free_device_list)> list(
      check_pointer(ibv_get_device_list(&count), "list the RDMA devices"), &ibv_free_device_list);
  std::string known;
  for (int i = 0; i < count; ++i) {
    ibv_device* const device = list.get()[i];
    if (name == device->name) {
      return check_pointer(ibv_open_device(device), "open RDMA device " + std::string(name));
    }
    known += std::string(known.empty() ? "" : ", ") + device->name;
  }
  throw Error(ErrorCode::not_found, "there is no RDMA device '" + std::string(name) +
                                        "'; there are: " + (known.empty() ? "none" : known));
}

const std::string& require_rdma(const device::Device& device) {
  if (device.kind != device::Kind::rdma) {
    throw Error(ErrorCode::invalid_value, device.describe() + " is not an RDMA device");
  }
  return device.name;
}

}  // namespace

DeviceContext::DeviceContext(std::string_view name)
    : DeviceContext(Native(open(name), "a device")) {}

DeviceContext::DeviceContext(const device::Device& device) : DeviceContext(require_rdma(device)) {}

DeviceContext DeviceContext::import(ibv_context* native) {
  if (native == nullptr) throw Error(ErrorCode::invalid_value, "cannot import a null RDMA device");
  return DeviceContext(Native::borrow(native));
}

DeviceContext::DeviceContext(Native native) : native_(std::move(native)) {
  check(ibv_query_device(get(), &attributes_), "query RDMA device " + name());
}

device::Support DeviceContext::supports(QpType type) const {
  switch (native_->device->transport_type) {
    case IBV_TRANSPORT_IB: return {true, {}};
    case IBV_TRANSPORT_IWARP:
      if (type != QpType::rc) return {false, "an iWARP device has only reliable connections"};
      return {false, "an iWARP queue pair needs its own rdma_cm_id, which is not supported"};
    default: return {false, "its transport is not InfiniBand's"};
  }
}

device::Support DeviceContext::supports_on_demand_paging() const {
  ibv_device_attr_ex attributes{};
  const int errnum = errno_of(ibv_query_device_ex(get(), nullptr, &attributes));
  if (errnum != 0) return {false, core::describe_errno(errnum)};
  if ((attributes.odp_caps.general_caps & IBV_ODP_SUPPORT) != 0) return {true, {}};
  return {false, "the device has no on-demand paging"};
}

ibv_port_attr DeviceContext::port(std::uint8_t number) const {
  ibv_port_attr attributes{};
  check(ibv_query_port(get(), number, &attributes),
        "query port " + std::to_string(number) + " of " + name());
  return attributes;
}

std::vector<std::uint16_t> DeviceContext::pkeys(std::uint8_t port) const {
  std::vector<std::uint16_t> keys(this->port(port).pkey_tbl_len);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    __be16 key = 0;
    check(ibv_query_pkey(get(), port, static_cast<int>(i), &key), "read a P_Key of " + name());
    keys[i] = ntohs(key);
  }
  return keys;
}

std::vector<ibv_gid_entry> DeviceContext::gids(std::uint8_t port) const {
  // sgid_index has 8 bits. The call wants room for the tables of all ports at once.
  std::vector<ibv_gid_entry> entries(std::max<std::size_t>(attributes_.phys_port_cnt, 1) * 256);
  const auto found = ibv_query_gid_table(get(), entries.data(), entries.size(), 0);
  if (found < 0) check(static_cast<int>(found), "read the GID table of " + name());
  entries.resize(static_cast<std::size_t>(found));
  std::erase_if(entries, [port](const ibv_gid_entry& entry) {
    return entry.port_num != port || entry.gid_index > 255;
  });
  return entries;
}

}  // namespace offload::rdma
