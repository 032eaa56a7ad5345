#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <vector>

#include "device/device.hpp"
#include "tests/support/temp_dir.hpp"

#undef ibv_get_device_list  // a macro where providers are linked statically

namespace {

/// The devices of the fake libibverbs.
std::vector<ibv_device*> fake_devices;
int fake_errno = 0;
int lists_given_out = 0;

}  // namespace

extern "C" {

ibv_device** ibv_get_device_list(int* count) {
  if (fake_errno != 0) {
    errno = fake_errno;
    return nullptr;
  }
  *count = static_cast<int>(fake_devices.size());
  ++lists_given_out;
  fake_devices.push_back(nullptr);
  return fake_devices.data();
}

void ibv_free_device_list(ibv_device**) {
  fake_devices.pop_back();
  --lists_given_out;
}
}

namespace offload::device {
namespace {

class RdmaDevicesTest : public testing::Test {
 protected:
  void SetUp() override {
    fake_devices.clear();
    fake_errno = 0;
    lists_given_out = 0;
  }
  void TearDown() override { EXPECT_EQ(lists_given_out, 0); }

  /// Makes a device of that name whose folder in sysfs is the test's.
  static ibv_device make(const std::string& name, const std::filesystem::path& folder) {
    ibv_device device{};
    std::snprintf(device.name, sizeof device.name, "%s", name.c_str());
    std::snprintf(device.ibdev_path, sizeof device.ibdev_path, "%s", folder.c_str());
    return device;
  }
};

TEST_F(RdmaDevicesTest, ACardHasItsPciAddressAndNode) {
  const support::TempDir temporary;
  const std::filesystem::path folder = temporary.path();
  const auto pci = folder / "pci0000:00" / "0000:d1:00.0";
  std::filesystem::create_directories(pci);
  std::filesystem::create_directories(folder / "mlx5_0");
  std::filesystem::create_directory_symlink(pci, folder / "mlx5_0" / "device");
  std::ofstream(pci / "numa_node") << 1 << "\n";
  ibv_device card = make("mlx5_0", folder / "mlx5_0");
  ibv_device emulated = make("rxe0", folder / "rxe0");
  fake_devices = {&card, &emulated};

  const DeviceList found = list_rdma_devices();
  EXPECT_TRUE(found.why_none.empty());
  ASSERT_EQ(found.devices.size(), 2U);
  EXPECT_EQ(found.devices[0].kind, Kind::rdma);
  EXPECT_EQ(found.devices[0].describe(), "rdma:0 mlx5_0 at 0000:d1:00.0");
  EXPECT_EQ(found.devices[0].numa_node, 1);
  EXPECT_EQ(found.devices[0].function, FunctionKind::physical);
  EXPECT_EQ(found.devices[1].function, std::nullopt);
  EXPECT_EQ(found.devices[1].describe(), "rdma:1 rxe0");
  EXPECT_EQ(found.devices[1].numa_node, -1);
}

TEST_F(RdmaDevicesTest, AnEmptyListIsSaid) {
  const DeviceList found = list_rdma_devices();
  EXPECT_TRUE(found.devices.empty());
  EXPECT_EQ(found.why_none, "libibverbs lists no RDMA device");
}

TEST_F(RdmaDevicesTest, AFailedListIsSaidWithItsReason) {
  fake_errno = ENOSYS;
  EXPECT_EQ(list_rdma_devices().why_none,
            "the kernel has no RDMA (the module ib_uverbs is not loaded)");
  fake_errno = EPERM;
  EXPECT_EQ(list_rdma_devices().why_none.rfind("ibv_get_device_list: ", 0), 0U);
}

TEST_F(RdmaDevicesTest, ItReachesHostMemoryThatIsRegisteredAndHasNone) {
  Device device;
  device.kind = Kind::rdma;
  for (unsigned i = 0; i < kCapabilities; ++i) {
    const auto capability = static_cast<Capability>(i);
    const Support support = supports(device, capability);
    EXPECT_EQ(support.supported, capability == Capability::mapped_host_memory ||
                                     capability == Capability::export_to_peer);
    EXPECT_EQ(support.supported, support.reason.empty()) << name_of(capability);
  }
}

}  // namespace
}  // namespace offload::device
