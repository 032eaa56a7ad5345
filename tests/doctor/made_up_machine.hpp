#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "apps/doctor/tree.hpp"
#include "tests/support/temp_dir.hpp"

namespace offload::doctor {

/// A machine of files that a test writes.
class MadeUpMachine {
 public:
  void write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = directory_.path() + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << text;
  }
  void remove(const std::string& path) const {
    std::filesystem::remove_all(directory_.path() + path);
  }

  void link(const std::string& path, const std::string& to) const {
    const std::filesystem::path at = directory_.path() + path;
    std::filesystem::create_directories(at.parent_path());
    std::filesystem::create_directory_symlink(directory_.path() + to, at);
  }
  /// A device below a root complex, and all on the way there, with the links that a bus has:
  /// "pci0000:00/0000:00:01.0/0000:01:00.0".
  void place(const std::string& way) const {
    std::filesystem::create_directories(directory_.path() + "/sys/devices/" + way);
    for (std::size_t end = way.find('/'); end != std::string::npos;) {
      const std::size_t begin = end + 1;
      end = way.find('/', begin);
      const std::string path = folder_of(way.substr(begin, end - begin));
      if (!std::filesystem::exists(directory_.path() + path)) {
        link(path, "/sys/devices/" + way.substr(0, end));
      }
    }
  }

  /// A GPU of NVIDIA's with its driver.
  void add_gpu(const std::string& address, int node) const {
    const std::string folder = "/sys/bus/pci/devices/" + address;
    write(folder + "/vendor", "0x10de\n");
    write(folder + "/class", "0x030200\n");
    write(folder + "/numa_node", std::to_string(node) + "\n");
    write(folder + "/driver/module/initstate", "live\n");
    write("/proc/driver/nvidia/version",
          "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06\nGCC version: 12\n");
    write("/proc/driver/nvidia/params", "RegistryDwords: \"PeerMappingOverride=1;\"\n");
    write("/dev/nvidiactl", "");
    write("/dev/nvidia-uvm", "");
  }

  /// An RDMA card with one active port of Ethernet. `address`: of its function, which has a place;
  /// an SF's is its name.
  void add_card(const std::string& name, int node, const std::string& address = {},
                const std::string& id = {}) const {
    const std::string folder = "/sys/class/infiniband/" + name;
    if (!address.empty()) {
      link(folder + "/device", folder_of(address));
      write(folder + "/device/device", id + "\n");
      write(folder + "/device/resource0", "");
      write(folder + "/device/resource0_wc", "");
    }
    write(folder + "/device/vendor", "0x15b3\n");
    write(folder + "/device/numa_node", std::to_string(node) + "\n");
    const std::string port = folder + "/ports/1";
    write(port + "/state", "4: ACTIVE\n");
    write(port + "/link_layer", "Ethernet\n");
    write(port + "/rate", "400 Gb/sec (4X NDR)\n");
    write(port + "/gids/0", "fe80:0000:0000:0000:0202:c9ff:fe00:0001\n");
    write(port + "/gid_attrs/types/0", "IB/RoCE v1\n");
    write(port + "/gids/1", "0000:0000:0000:0000:0000:ffff:0a00:0001\n");
    write(port + "/gid_attrs/types/1", "RoCE v2\n");
    write("/dev/infiniband/uverbs0", "");
    write("/dev/infiniband/rdma_cm", "");
  }

  [[nodiscard]] Tree tree() const { return Tree(directory_.path()); }

 private:
  static std::string folder_of(const std::string& device) {
    const bool is_pci = device.find(':') != std::string::npos;
    return (is_pci ? "/sys/bus/pci/devices/" : "/sys/bus/auxiliary/devices/") + device;
  }

  support::TempDir directory_;
};

}  // namespace offload::doctor
