#include "device/interfaces.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if_arp.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>

#include "device/sysfs.hpp"

namespace offload::device {
namespace {

namespace fs = std::filesystem;

std::uint32_t number(const std::string& text) noexcept {
  std::uint32_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// IP over InfiniBand: the port is that of its parent device, numbered from 0 (dev_port,
/// sysfs-class-net), and its GID table names no interface.
void add_infiniband_port(const fs::path& place, Interface& interface) {
  std::error_code error;
  const fs::directory_iterator parent(place / "device/infiniband", error);
  if (error || parent == fs::directory_iterator()) return;
  interface.rdma_device = parent->path().filename().string();
  interface.rdma_port = number(attribute(place / "dev_port")) + 1;
}

std::optional<Interface> interface_at(const fs::path& place) {
  const std::uint32_t type = number(attribute(place / "type"));
  if (type != ARPHRD_ETHER && type != ARPHRD_INFINIBAND) return std::nullopt;
  Interface found;
  found.name = place.filename().string();
  found.mac = attribute(place / "address");
  found.mtu = number(attribute(place / "mtu"));
  found.up = attribute(place / "operstate") == "up";
  found.pci_address = card_address(place / "device");
  found.function = function_kind(place / "device");
  if (type == ARPHRD_INFINIBAND) add_infiniband_port(place, found);
  return found;
}

/// The RDMA device and port of each Ethernet interface: the "netdev" of its ports, as of Linux 4.13
/// on (ports/PORT/gid_attrs/ndevs, whose first entry names the interface of the port).
void add_rdma_devices(std::vector<Interface>& interfaces, const fs::path& devices) {
  std::error_code error;
  for (fs::directory_iterator device(devices, error), end; !error && device != end;
       device.increment(error)) {
    std::error_code none;
    for (fs::directory_iterator port(device->path() / "ports", none); !none && port != end;
         port.increment(none)) {
      const std::string netdev = attribute(port->path() / "gid_attrs/ndevs/0");
      for (Interface& interface : interfaces) {
        if (interface.name != netdev) continue;
        interface.rdma_device = device->path().filename().string();
        interface.rdma_port = number(port->path().filename().string());
      }
    }
  }
}

void add_addresses(std::vector<Interface>& interfaces) {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return require_descriptors("the addresses of interfaces", errno);
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> list(first, &::freeifaddrs);
  for (const int family : {AF_INET, AF_INET6}) {
    for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) {
      if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != family) continue;
      const void* const address =
          family == AF_INET ? static_cast<const void*>(
                                  &reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr)
                            : &reinterpret_cast<const sockaddr_in6*>(one->ifa_addr)->sin6_addr;
      std::array<char, INET6_ADDRSTRLEN> text{};
      if (::inet_ntop(family, address, text.data(), text.size()) == nullptr) continue;
      for (Interface& interface : interfaces) {
        if (interface.name == one->ifa_name) interface.addresses.emplace_back(text.data());
      }
    }
  }
}

}  // namespace

std::string Interface::describe() const {
  std::string text = name + " " + mac;
  for (const std::string& address : addresses) text += ", " + address;
  if (!pci_address.empty()) {
    text += ", " + std::string(function ? name_of(*function) : "a function") + " at " + pci_address;
  }
  if (!rdma_device.empty()) text += ", RDMA device " + rdma_device;
  return text;
}

std::vector<Interface> list_interfaces(const fs::path& interfaces) {
  std::vector<Interface> found;
  std::error_code error;
  for (fs::directory_iterator at(interfaces, error), end; !error && at != end;
       at.increment(error)) {
    if (auto interface = interface_at(at->path())) found.push_back(std::move(*interface));
  }
  require_descriptors(interfaces, error.value());
  std::ranges::sort(found, {}, &Interface::name);
  add_rdma_devices(found, interfaces.parent_path() / "infiniband");
  add_addresses(found);
  return found;
}

}  // namespace offload::device
