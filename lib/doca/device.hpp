#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.hpp"
#include "doca/include/doca_dev.h"
#include "doca/use.hpp"

/// A representor of a network function, by its PCI address.
struct doca_devinfo_rep {
  std::string pci_address;
  std::string device;  ///< the PCI address of the device that has it
};

/// A device as it was listed.
struct doca_devinfo {
  offload::device::Device device;
  std::string interface;  ///< the network interface; empty: none
  std::vector<doca_devinfo_rep> representors;
};

namespace offload::doca {
struct RdmaDevice;
}

/// An open device.
struct doca_dev {
  explicit doca_dev(doca_devinfo of);
  /// With a device that is open already. `origin` lives as long as this.
  doca_dev(doca_devinfo of, std::unique_ptr<offload::doca::RdmaDevice> opened,
           std::shared_ptr<void> origin);
  doca_dev& operator=(doca_dev&&) = delete;
  ~doca_dev();

  [[nodiscard]] bool is_rdma() const noexcept {
    return info.device.kind == offload::device::Kind::rdma;
  }
  /// Opens an RDMA device, the first time. Any thread. Throws Error.
  offload::doca::RdmaDevice& rdma();

  doca_devinfo info;
  std::atomic<std::size_t> users{0};   ///< mmaps and contexts
  std::atomic<std::size_t> shares{1};  ///< UMEMs, UARs and the handle

 private:
  std::shared_ptr<void> origin_;
  std::mutex opens_;  ///< of rdma_, which is constant once it is set
  std::unique_ptr<offload::doca::RdmaDevice> rdma_;
};

struct doca_dev_rep {
  doca_devinfo_rep info;
};

namespace offload::doca {

/// Parses the text of OFFLOAD_DOCA_DEVICES. Throws Error (invalid_value).
std::vector<doca_devinfo> parse_devices(std::string_view text);

/// Describes the RDMA device of this name. Throws Error (not_found).
doca_devinfo rdma_device_named(std::string_view name);

using DeviceUse = Use<doca_dev>;

}  // namespace offload::doca
