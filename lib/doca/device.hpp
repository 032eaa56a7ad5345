#pragma once

#include <atomic>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "device/device.hpp"
#include "doca/include/doca_dev.h"

/// A representor of a network function, by its PCI address.
struct doca_devinfo_rep {
  std::string pci_address;
  std::string device;  ///< the PCI address of the device that has it
};

/// A device as it was listed.
struct doca_devinfo {
  offload::device::Device device;
  std::string interface;  ///< of an RDMA device; empty: none
  std::vector<doca_devinfo_rep> representors;
};

/// An open device.
struct doca_dev {
  doca_devinfo info;
  std::atomic<std::size_t> users{0};  ///< mmaps and contexts; relaxed: it publishes nothing
};

struct doca_dev_rep {
  doca_devinfo_rep info;
};

namespace offload::doca {

/// Parses the text of OFFLOAD_DOCA_DEVICES. Throws Error (invalid_value).
std::vector<doca_devinfo> parse_devices(std::string_view text);

/// Counts a user of an open device for as long as it lives.
class DeviceUse {
 public:
  explicit DeviceUse(doca_dev& dev) noexcept : dev_(&dev) {
    dev.users.fetch_add(1, std::memory_order_relaxed);
  }
  DeviceUse(const DeviceUse&) = delete;
  DeviceUse(DeviceUse&& other) noexcept : dev_(std::exchange(other.dev_, nullptr)) {}
  DeviceUse& operator=(DeviceUse other) noexcept {
    std::swap(dev_, other.dev_);
    return *this;
  }
  ~DeviceUse() {
    if (dev_ != nullptr) dev_->users.fetch_sub(1, std::memory_order_relaxed);
  }
  [[nodiscard]] doca_dev* get() const noexcept { return dev_; }

 private:
  doca_dev* dev_;
};

}  // namespace offload::doca
