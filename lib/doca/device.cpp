#include "doca/device.hpp"

#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>

#include "core/error.hpp"
#include "core/fd.hpp"
#include "device/interfaces.hpp"
#include "doca/guard.hpp"
#include "doca/rdma/rdma_device.hpp"

namespace offload::doca {
namespace {

using core::Error;
using core::ErrorCode;
using device::Kind;

/// The samples of DOCA name these addresses by default: a DPU's function and one of its host.
constexpr const char* kDefaultDevices = "03:00.0/b1:00.0,b1:00.0";

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::string address_of(std::string_view text) {
  const auto address = device::full_pci_address(text);
  if (!address || address->size() >= DOCA_DEVINFO_PCI_ADDR_SIZE) {
    throw Error(ErrorCode::invalid_value, "OFFLOAD_DOCA_DEVICES: '" + std::string(text) +
                                              "' is not a PCI address, as 03:00.0");
  }
  return *address;
}

std::string interface_of(std::string_view text) {
  if (text.empty() || text.size() >= IFNAMSIZ) {
    throw Error(ErrorCode::invalid_value, "OFFLOAD_DOCA_DEVICES: '" + std::string(text) +
                                              "' is not the name of a network interface");
  }
  return std::string(text);
}

std::vector<doca_devinfo> list_rdma() {
  std::vector<doca_devinfo> all;
  const auto interfaces = device::list_interfaces();
  for (device::Device& card : device::list_rdma_devices().devices) {
    const auto found = std::find_if(interfaces.begin(), interfaces.end(), [&](const auto& each) {
      return each.rdma_device == card.name;
    });
    all.push_back({std::move(card), found != interfaces.end() ? found->name : std::string(), {}});
  }
  return all;
}

std::vector<doca_devinfo> list_all() {
  const char* const text = std::getenv("OFFLOAD_DOCA_DEVICES");
  std::vector<doca_devinfo> all = parse_devices(text != nullptr ? text : kDefaultDevices);
  for (doca_devinfo& each : list_rdma()) all.push_back(std::move(each));
  return all;
}

/// A list as the C interface has it: an array that ends with null.
template <class Info>
Info** make_list(std::vector<Info> infos) {
  auto list = std::make_unique<Info*[]>(infos.size() + 1);
  std::vector<std::unique_ptr<Info>> owned;
  for (Info& info : infos) owned.push_back(std::make_unique<Info>(std::move(info)));
  for (std::size_t i = 0; i < owned.size(); ++i) list[i] = owned[i].release();
  return list.release();
}

template <class Info>
doca_error_t destroy_list(Info** list) noexcept {
  if (list == nullptr) return DOCA_ERROR_INVALID_VALUE;
  for (Info** each = list; *each != nullptr; ++each) delete *each;
  delete[] list;
  return DOCA_SUCCESS;
}

doca_error_t write_text(const std::string& text, char* to, std::size_t size) noexcept {
  if (text.empty()) return DOCA_ERROR_NOT_FOUND;
  if (text.size() >= size) return DOCA_ERROR_INVALID_VALUE;
  std::memcpy(to, text.c_str(), text.size() + 1);
  return DOCA_SUCCESS;
}

doca_error_t compare(const char* call, const std::string& own, const char* other,
                     std::uint8_t* is_equal) noexcept {
  std::optional<std::string> address;
  const doca_error_t result = guarded(call, [&] { address = device::full_pci_address(other); });
  if (result != DOCA_SUCCESS) return result;
  if (!address) return DOCA_ERROR_INVALID_VALUE;
  *is_equal = *address == own ? 1 : 0;
  return DOCA_SUCCESS;
}

}  // namespace

std::vector<doca_devinfo> parse_devices(std::string_view text) {
  std::vector<doca_devinfo> devices;
  if (text.empty()) return devices;
  for (const std::string_view part : split(text, ',')) {
    std::vector<std::string_view> addresses = split(part, '/');
    doca_devinfo info;
    std::string_view& own = addresses.front();
    if (const std::size_t end = own.find('='); end != own.npos) {
      info.interface = interface_of(own.substr(end + 1));
      own = own.substr(0, end);
    }
    info.device.kind = Kind::host;
    info.device.index = static_cast<std::uint32_t>(devices.size());
    info.device.name = "host";
    info.device.pci_address = address_of(addresses.front());
    for (std::size_t i = 1; i < addresses.size(); ++i) {
      info.representors.push_back({address_of(addresses[i]), info.device.pci_address});
    }
    devices.push_back(std::move(info));
  }
  return devices;
}

doca_devinfo rdma_device_named(std::string_view name) {
  for (doca_devinfo& each : list_rdma()) {
    if (each.device.name == name) return std::move(each);
  }
  throw Error(ErrorCode::not_found, "no RDMA device is named " + std::string(name));
}

}  // namespace offload::doca

using namespace offload::doca;  // NOLINT(google-build-using-namespace): the calls have no namespace

doca_dev::doca_dev(doca_devinfo of) : info(std::move(of)) {}
doca_dev::doca_dev(doca_devinfo of, std::unique_ptr<RdmaDevice> opened,
                   std::shared_ptr<void> origin)
    : info(std::move(of)), origin_(std::move(origin)), rdma_(std::move(opened)) {}
doca_dev::~doca_dev() = default;

RdmaDevice& doca_dev::rdma() {
  const std::lock_guard lock(opens_);
  if (!rdma_) rdma_ = std::make_unique<RdmaDevice>(info.device);
  return *rdma_;
}

doca_error_t doca_devinfo_create_list(doca_devinfo*** dev_list, uint32_t* nb_devs) {
  if (any_null(dev_list, nb_devs)) return DOCA_ERROR_INVALID_VALUE;
  return guarded(__func__, [&] {
    std::vector<doca_devinfo> all = list_all();
    const auto count = static_cast<std::uint32_t>(all.size());
    *dev_list = make_list(std::move(all));
    *nb_devs = count;
  });
}

doca_error_t doca_devinfo_destroy_list(doca_devinfo** dev_list) {
  return destroy_list(dev_list);
}

doca_error_t doca_dev_open(doca_devinfo* devinfo, doca_dev** dev) {
  if (any_null(devinfo, dev)) return DOCA_ERROR_INVALID_VALUE;
  return guarded(__func__, [&] { *dev = new doca_dev(*devinfo); });
}

doca_error_t doca_dev_close(doca_dev* dev) {
  if (dev == nullptr) return DOCA_SUCCESS;
  if (is_used(*dev)) return DOCA_ERROR_IN_USE;
  end_share(*dev);
  return DOCA_SUCCESS;
}

doca_devinfo* doca_dev_as_devinfo(const doca_dev* dev) {
  // The const_cast is safe: no call changes a devinfo.
  return dev != nullptr ? const_cast<doca_devinfo*>(&dev->info) : nullptr;
}

doca_error_t doca_devinfo_is_equal_pci_addr(const doca_devinfo* devinfo, const char* pci_addr,
                                            uint8_t* is_equal) {
  if (any_null(devinfo, pci_addr, is_equal)) return DOCA_ERROR_INVALID_VALUE;
  return compare(__func__, devinfo->device.pci_address, pci_addr, is_equal);
}

doca_error_t doca_devinfo_get_pci_addr_str(const doca_devinfo* devinfo, char* pci_addr) {
  if (any_null(devinfo, pci_addr)) return DOCA_ERROR_INVALID_VALUE;
  return write_text(devinfo->device.pci_address, pci_addr, DOCA_DEVINFO_PCI_ADDR_SIZE);
}

doca_error_t doca_devinfo_get_pci_func_type(const doca_devinfo* devinfo, doca_pci_func_type* type) {
  using offload::device::FunctionKind;
  if (any_null(devinfo, type)) return DOCA_ERROR_INVALID_VALUE;
  if (!devinfo->device.function) return DOCA_ERROR_NOT_SUPPORTED;
  switch (*devinfo->device.function) {
    case FunctionKind::physical: *type = DOCA_PCI_FUNC_TYPE_PF; break;
    case FunctionKind::virtual_: *type = DOCA_PCI_FUNC_TYPE_VF; break;
    case FunctionKind::subfunction: *type = DOCA_PCI_FUNC_TYPE_SF; break;
  }
  return DOCA_SUCCESS;
}

doca_error_t doca_devinfo_get_iface_name(const doca_devinfo* devinfo, char* name, uint32_t size) {
  if (any_null(devinfo, name)) return DOCA_ERROR_INVALID_VALUE;
  return write_text(devinfo->interface, name, size);
}

doca_error_t doca_devinfo_get_ibdev_name(const doca_devinfo* devinfo, char* name, uint32_t size) {
  if (any_null(devinfo, name)) return DOCA_ERROR_INVALID_VALUE;
  // A host device has the name of its interface, so that programs which choose by name find it.
  const bool is_rdma = devinfo->device.kind == offload::device::Kind::rdma;
  return write_text(is_rdma ? devinfo->device.name : devinfo->interface, name, size);
}

doca_error_t doca_devinfo_get_mac_addr(const doca_devinfo* devinfo, uint8_t* mac_addr,
                                       uint32_t size) {
  if (any_null(devinfo, mac_addr) || size < DOCA_DEVINFO_MAC_ADDR_SIZE) {
    return DOCA_ERROR_INVALID_VALUE;
  }
  if (devinfo->interface.empty()) return DOCA_ERROR_NOT_FOUND;
  // By ioctl: sysfs may be that of another network namespace.
  return guarded(__func__, [&] {
    const offload::core::Fd any(
        offload::core::check_errno(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), "socket"));
    ifreq request{};
    devinfo->interface.copy(request.ifr_name, sizeof request.ifr_name - 1);
    if (::ioctl(any.get(), SIOCGIFHWADDR, &request) != 0) {
      throw offload::core::Error(offload::core::ErrorCode::not_found,
                                 devinfo->interface + ": " + offload::core::describe_errno(errno));
    }
    std::memcpy(mac_addr, request.ifr_hwaddr.sa_data, DOCA_DEVINFO_MAC_ADDR_SIZE);
  });
}

doca_error_t doca_devinfo_get_sf_index(const doca_devinfo* devinfo, uint32_t* sf_index) {
  return any_null(devinfo, sf_index) ? DOCA_ERROR_INVALID_VALUE : DOCA_ERROR_NOT_SUPPORTED;
}

doca_error_t doca_devinfo_rep_create_list(doca_dev* dev, int filter,
                                          doca_devinfo_rep*** dev_list_rep, uint32_t* nb_devs_rep) {
  constexpr int kFilters = DOCA_DEVINFO_REP_FILTER_NET | DOCA_DEVINFO_REP_FILTER_EMULATED;
  if (any_null(dev, dev_list_rep, nb_devs_rep) || (filter & ~kFilters) != 0) {
    return DOCA_ERROR_INVALID_VALUE;
  }
  if (dev->info.representors.empty()) return DOCA_ERROR_NOT_SUPPORTED;
  return guarded(__func__, [&] {
    std::vector<doca_devinfo_rep> found;
    if (filter != DOCA_DEVINFO_REP_FILTER_EMULATED) found = dev->info.representors;
    const auto count = static_cast<std::uint32_t>(found.size());
    *dev_list_rep = make_list(std::move(found));
    *nb_devs_rep = count;
  });
}

doca_error_t doca_devinfo_rep_destroy_list(doca_devinfo_rep** dev_list_rep) {
  return destroy_list(dev_list_rep);
}

doca_error_t doca_devinfo_rep_cap_is_filter_net_supported(const doca_devinfo* devinfo,
                                                          uint8_t* filter_net_supported) {
  if (any_null(devinfo, filter_net_supported)) return DOCA_ERROR_INVALID_VALUE;
  *filter_net_supported = devinfo->representors.empty() ? 0 : 1;
  return DOCA_SUCCESS;
}

doca_error_t doca_devinfo_rep_is_equal_pci_addr(const doca_devinfo_rep* devinfo_rep,
                                                const char* pci_addr, uint8_t* is_equal) {
  if (any_null(devinfo_rep, pci_addr, is_equal)) return DOCA_ERROR_INVALID_VALUE;
  return compare(__func__, devinfo_rep->pci_address, pci_addr, is_equal);
}

doca_error_t doca_devinfo_rep_get_pci_addr_str(const doca_devinfo_rep* devinfo_rep,
                                               char* pci_addr) {
  if (any_null(devinfo_rep, pci_addr)) return DOCA_ERROR_INVALID_VALUE;
  return write_text(devinfo_rep->pci_address, pci_addr, DOCA_DEVINFO_REP_PCI_ADDR_SIZE);
}

doca_error_t doca_devinfo_rep_get_vuid(const doca_devinfo_rep* devinfo_rep, char* vuid,
                                       uint32_t size) {
  if (any_null(devinfo_rep, vuid)) return DOCA_ERROR_INVALID_VALUE;
  doca_error_t written = DOCA_SUCCESS;
  const doca_error_t result = guarded(__func__, [&] {
    written = write_text(devinfo_rep->device + "/" + devinfo_rep->pci_address, vuid, size);
  });
  return result != DOCA_SUCCESS ? result : written;
}

doca_error_t doca_dev_rep_open(doca_devinfo_rep* devinfo_rep, doca_dev_rep** dev_rep) {
  if (any_null(devinfo_rep, dev_rep)) return DOCA_ERROR_INVALID_VALUE;
  return guarded(__func__, [&] { *dev_rep = new doca_dev_rep{*devinfo_rep}; });
}

doca_error_t doca_dev_rep_close(doca_dev_rep* dev_rep) {
  delete dev_rep;
  return DOCA_SUCCESS;
}

doca_devinfo_rep* doca_dev_rep_as_devinfo(const doca_dev_rep* dev_rep) {
  // The const_cast is safe: no call changes a devinfo.
  return dev_rep != nullptr ? const_cast<doca_devinfo_rep*>(&dev_rep->info) : nullptr;
}
