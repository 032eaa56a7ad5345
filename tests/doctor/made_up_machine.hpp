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

  /// A GPU of NVIDIA's with its driver.
  void add_gpu(const std::string& address, int node) const {
    const std::string folder = "/sys/bus/pci/devices/" + address;
    write(folder + "/vendor", "0x10de\n");
    write(folder + "/class", "0x030200\n");
    write(folder + "/numa_node", std::to_string(node) + "\n");
    write(folder + "/driver/module/initstate", "live\n");
    write("/proc/driver/nvidia/version",
          "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06\nGCC version: 12\n");
    write("/dev/nvidiactl", "");
    write("/dev/nvidia-uvm", "");
  }

  /// An RDMA card with one active port of Ethernet.
  void add_card(const std::string& name, int node) const {
    const std::string folder = "/sys/class/infiniband/" + name;
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
  support::TempDir directory_;
};

}  // namespace offload::doctor
