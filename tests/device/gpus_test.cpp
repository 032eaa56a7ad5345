#include <gtest/gtest.h>

#include "device/device.hpp"

/// Tests both implementations, with CUDA and without.
namespace offload::device {
namespace {

TEST(Gpus, AreThereOrItIsSaidWhyNot) {
  const DeviceList gpus = list_gpus();
  EXPECT_EQ(gpus.devices.empty(), !gpus.why_none.empty());
  for (std::size_t i = 0; i < gpus.devices.size(); ++i) {
    const Device& gpu = gpus.devices[i];
    EXPECT_EQ(gpu.kind, Kind::gpu);
    EXPECT_EQ(gpu.index, i);
    EXPECT_FALSE(gpu.name.empty());
    EXPECT_TRUE(is_pci_address(gpu.pci_address)) << gpu.pci_address;
    EXPECT_GT(gpu.memory, 0U);
  }
}

TEST(Gpus, OneThatIsNotThereSupportsNothingAndSaysWhy) {
  const Device missing{Kind::gpu, 9999, "missing", "ffff:ff:1f.7", -1, 0};
  for (unsigned i = 0; i < kCapabilities; ++i) {
    const Support support = supports(missing, static_cast<Capability>(i));
    EXPECT_FALSE(support.supported) << name_of(static_cast<Capability>(i));
    EXPECT_FALSE(support.reason.empty()) << name_of(static_cast<Capability>(i));
  }
}

TEST(Gpus, HaveNoneOfTheHostsCapabilities) {
  for (const Device& gpu : list_gpus().devices) {
    for (const auto capability :
         {Capability::shared_memory, Capability::numa_binding, Capability::huge_pages}) {
      EXPECT_FALSE(supports(gpu, capability));
    }
  }
}

}  // namespace
}  // namespace offload::device
