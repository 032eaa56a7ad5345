#include "device/device.hpp"

#include <numa.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <optional>
#include <regex>

#include "core/error.hpp"
#include "core/fd.hpp"

namespace offload::device {
namespace {

using core::Error;
using core::ErrorCode;

Device host() {
  const auto pages = static_cast<std::uint64_t>(std::max(::sysconf(_SC_PHYS_PAGES), 0L));
  const auto page_size = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return {Kind::host, 0, "host", {}, -1, pages * page_size};
}

Support has_shared_memory() {
  const core::Fd fd(::memfd_create("probe", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (fd.valid()) return {true, {}};
  return {false, "memfd_create: " + core::describe_errno(errno)};
}

Support has_numa() {
  if (::numa_available() < 0) return {false, "the kernel has no NUMA support"};
  if (::numa_num_configured_nodes() < 2) return {false, "there is only one NUMA node"};
  return {true, {}};
}

/// Checks for pages of the size that memory::allocate_range() uses.
Support has_huge_pages() {
  std::uint64_t free = 0;
  std::ifstream file("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages");
  if (file >> free && free > 0) return {true, {}};
  return {false, "no huge page of 2 MiB is free (/sys/kernel/mm/hugepages)"};
}

Support host_supports(Capability capability) {
  switch (capability) {
    case Capability::shared_memory: return has_shared_memory();
    case Capability::numa_binding: return has_numa();
    case Capability::huge_pages: return has_huge_pages();
    case Capability::export_to_process: return has_shared_memory();
    case Capability::mapped_host_memory:
    case Capability::native_host_atomics:
    case Capability::copies: return {true, {}};
    case Capability::export_to_peer: return {false, "a network card must register its memory"};
    case Capability::persistent_worker: return {false, "the host processes requests with threads"};
    case Capability::peer_memory:
    case Capability::dma_buf: break;
  }
  return {false, "host memory is accessed directly"};
}

/// lib/rdma has the capabilities that need a protection domain, such as registering dma-bufs.
Support rdma_supports(Capability capability) {
  switch (capability) {
    case Capability::mapped_host_memory:
    case Capability::export_to_peer: return {true, {}};
    case Capability::copies: return {false, "an RDMA device copies between peers: rdma::WriteTask"};
    case Capability::persistent_worker: return {false, "an RDMA device runs no kernel"};
    case Capability::native_host_atomics:
      return {false, "query an open device: atomic_cap of rdma::DeviceContext::attributes()"};
    default: break;
  }
  return {false, "an RDMA device has no memory"};
}

bool is_meant(const Device& device, std::string_view selector,
              const std::optional<std::string>& pci_address) {
  const std::string kind(name_of(device.kind));
  if (selector == kind + ":" + std::to_string(device.index)) return true;
  if (selector == kind && device.index == 0) return true;
  if (!device.pci_address.empty() && pci_address == full_pci_address(device.pci_address)) {
    return true;
  }
  return selector == device.name;
}

std::string list_of(const std::vector<Device>& devices) {
  std::string list;
  for (const Device& device : devices) {
    if (!list.empty()) list += ", ";
    list += device.describe();
  }
  return list;
}

}  // namespace

std::string Device::describe() const {
  if (kind == Kind::host) return "host";
  std::string text(name_of(kind));
  text += ":" + std::to_string(index) + " " + name;
  if (!pci_address.empty()) text += " at " + pci_address;
  return text;
}

std::string_view name_of(FunctionKind kind) noexcept {
  switch (kind) {
    case FunctionKind::physical: return "PF";
    case FunctionKind::virtual_: return "VF";
    case FunctionKind::subfunction: return "SF";
  }
  return "unknown";
}

std::string_view name_of(Kind kind) noexcept {
  switch (kind) {
    case Kind::host: return "host";
    case Kind::gpu: return "gpu";
    case Kind::rdma: return "rdma";
  }
  return "unknown";
}

std::string_view name_of(Capability capability) noexcept {
  switch (capability) {
    case Capability::shared_memory: return "shared_memory";
    case Capability::numa_binding: return "numa_binding";
    case Capability::huge_pages: return "huge_pages";
    case Capability::persistent_worker: return "persistent_worker";
    case Capability::mapped_host_memory: return "mapped_host_memory";
    case Capability::native_host_atomics: return "native_host_atomics";
    case Capability::peer_memory: return "peer_memory";
    case Capability::dma_buf: return "dma_buf";
    case Capability::export_to_process: return "export_to_process";
    case Capability::export_to_peer: return "export_to_peer";
    case Capability::copies: return "copies";
  }
  return "unknown";
}

Support supports(const Device& device, Capability capability) {
  switch (device.kind) {
    case Kind::host: return host_supports(capability);
    case Kind::gpu: return gpu_supports(device, capability);
    case Kind::rdma: return rdma_supports(capability);
  }
  return {false, "no such device"};
}

std::vector<Device> list_devices() {
  std::vector<Device> devices = {host()};
  for (Device& gpu : list_gpus().devices) devices.push_back(std::move(gpu));
  for (Device& card : list_rdma_devices().devices) devices.push_back(std::move(card));
  return devices;
}

bool is_pci_address(std::string_view text) {
  static const std::regex pattern(
      "([0-9a-fA-F]{1,8}:)?[0-9a-fA-F]{1,2}:[0-9a-fA-F]{1,2}([.][0-7])?");
  return std::regex_match(text.begin(), text.end(), pattern);
}

std::optional<std::string> full_pci_address(std::string_view text) {
  if (!is_pci_address(text)) return std::nullopt;
  std::string address(text);
  for (char& c : address) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (std::count(address.begin(), address.end(), ':') == 1) address.insert(0, "0000:");
  // nvidia-smi writes domains of eight digits, the kernel of four.
  while (address.find(':') > 4 && address.front() == '0') address.erase(0, 1);
  if (address.find('.') == std::string::npos) address.append(".0");
  return address;
}

const Device& find(const std::vector<Device>& devices, std::string_view selector) {
  const auto pci_address = full_pci_address(selector);
  const Device* found = nullptr;
  for (const Device& device : devices) {
    if (!is_meant(device, selector, pci_address)) continue;
    if (found != nullptr) {
      throw Error(ErrorCode::invalid_value, "'" + std::string(selector) +
                                                "' means several devices; choose by index or PCI "
                                                "address: " +
                                                list_of(devices));
    }
    found = &device;
  }
  if (found == nullptr) {
    throw Error(ErrorCode::not_found, "there is no device '" + std::string(selector) +
                                          "'; there are: " + list_of(devices));
  }
  return *found;
}

}  // namespace offload::device
