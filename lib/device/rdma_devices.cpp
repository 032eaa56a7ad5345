#include <infiniband/verbs.h>

#include <cerrno>
#include <filesystem>
#include <memory>

#include "core/error.hpp"
#include "device/sysfs.hpp"

namespace offload::device {
namespace {

/// Empty for an emulated device, which is on no bus.
std::string pci_address_of(const std::filesystem::path& device) {
  std::error_code error;
  const std::string name = std::filesystem::canonical(device, error).filename();
  return !error && is_pci_address(name) ? name : std::string();
}

std::string why_not(int errnum) {
  return errnum == ENOSYS ? "the kernel has no RDMA (the module ib_uverbs is not loaded)"
                          : "ibv_get_device_list: " + core::describe_errno(errnum);
}

}  // namespace

DeviceList list_rdma_devices() {
  DeviceList found;
  int count = 0;
  const std::unique_ptr<ibv_device*, decltype(&ibv_free_device_list)> list(
      ibv_get_device_list(&count), &ibv_free_device_list);
  if (list == nullptr) {
    found.why_none = why_not(errno);
    return found;
  }
  for (int i = 0; i < count; ++i) {
    const ibv_device& device = *list.get()[i];
    const auto place = std::filesystem::path(device.ibdev_path) / "device";
    found.devices.push_back({Kind::rdma, static_cast<std::uint32_t>(i), device.name,
                             pci_address_of(place), numa_node_of(place), 0, function_kind(place)});
  }
  if (count == 0) found.why_none = "libibverbs lists no RDMA device";
  return found;
}

}  // namespace offload::device
