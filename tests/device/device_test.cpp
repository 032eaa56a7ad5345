#include "device/device.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/error.hpp"
#include "tests/support/thrown.hpp"

namespace offload::device {
namespace {

using core::ErrorCode;
using support::thrown_by;

std::vector<Device> machine_with_many_devices() {
  return {{Kind::host, 0, "host", {}, -1, 1U << 30},
          {Kind::gpu, 0, "Big", "0000:01:00.0", 0, 1U << 30},
          {Kind::gpu, 1, "Small", "0000:c1:00.0", 1, 1U << 20},
          {Kind::gpu, 2, "Small", "0001:01:00.0", 1, 1U << 20},
          {Kind::rdma, 0, "mlx5_0", "0000:d1:00.0", 1, 0},
          {Kind::rdma, 1, "rxe0", {}, -1, 0}};
}

/// The index into machine_with_many_devices().
std::ptrdiff_t found(std::string_view selector) {
  const auto devices = machine_with_many_devices();
  return &find(devices, selector) - devices.data();
}

TEST(Find, ByKindAndIndex) {
  EXPECT_EQ(found("host"), 0);
  EXPECT_EQ(found("gpu"), 1);
  EXPECT_EQ(found("gpu:0"), 1);
  EXPECT_EQ(found("gpu:2"), 3);
  EXPECT_EQ(found("rdma"), 4);
  EXPECT_EQ(found("rdma:1"), 5);
  EXPECT_EQ(found("rxe0"), 5);
}

TEST(Find, ByPciAddressInEachOfItsForms) {
  EXPECT_EQ(found("0000:c1:00.0"), 2);
  EXPECT_EQ(found("0000:C1:00.0"), 2);
  EXPECT_EQ(found("00000000:C1:00.0"), 2);
  EXPECT_EQ(found("c1:00.0"), 2);
  EXPECT_EQ(found("c1:00"), 2);
  EXPECT_EQ(found("0001:01:00.0"), 3);
}

TEST(PciAddress, IsCompletedWithDomainAndFunction) {
  EXPECT_EQ(full_pci_address("03:00"), "0000:03:00.0");
  EXPECT_EQ(full_pci_address("AF:00.1"), "0000:af:00.1");
  EXPECT_EQ(full_pci_address("00000001:03:00.0"), "0001:03:00.0");
  EXPECT_EQ(full_pci_address("mlx5_0"), std::nullopt);
}

TEST(PciAddress, IsToldFromOtherText) {
  for (const char* address : {"0000:01:00.0", "01:00.0", "1:0", "00000000:C1:00.7", "ab:cd"}) {
    EXPECT_TRUE(is_pci_address(address)) << address;
  }
  for (const char* text : {"", ":", "::", "a:.", "01", "01:00.8", "01:00.", "g1:00.0", "001:00.0",
                           "0:01:00:00.0", "01:00.0 ", "000000000:01:00.0"}) {
    EXPECT_FALSE(is_pci_address(text)) << text;
  }
}

TEST(Find, ByNameIfItIsTheOnlyOne) {
  EXPECT_EQ(found("Big"), 1);
  const auto error = thrown_by([] { found("Small"); });
  EXPECT_EQ(error.code(), ErrorCode::invalid_value);
  EXPECT_NE(std::string(error.what()).find("gpu:2 Small at 0001:01:00.0"), std::string::npos);
}

TEST(Find, WhatIsNotThereIsAnErrorThatListsWhatIs) {
  for (const char* selector : {"", "gpu:3", "gpu:", "host:1", "02:00.0", "0000:01:00.1", "big", ":",
                               "::", "zz:00.0", "0000:0000:01:00.0"}) {
    const auto error = thrown_by([&] { found(selector); });
    EXPECT_EQ(error.code(), ErrorCode::not_found) << selector;
    EXPECT_NE(std::string(error.what()).find("gpu:0 Big at 0000:01:00.0"), std::string::npos);
  }
}

TEST(List, TheHostComesFirst) {
  const auto devices = list_devices();
  ASSERT_FALSE(devices.empty());
  EXPECT_EQ(devices[0].kind, Kind::host);
  EXPECT_GT(devices[0].memory, 0U);
  EXPECT_EQ(devices[0].describe(), "host");
  EXPECT_TRUE(supports(devices[0], Capability::shared_memory));
}

std::size_t count(Kind kind) {
  const auto devices = list_devices();
  return static_cast<std::size_t>(std::count_if(
      devices.begin(), devices.end(), [&](const Device& device) { return device.kind == kind; }));
}

TEST(List, WithoutAGpuItIsSaidWhy) {
  EXPECT_EQ(count(Kind::gpu) == 0, !list_gpus().why_none.empty());
}

TEST(List, WithoutAnRdmaDeviceItIsSaidWhy) {
  EXPECT_EQ(count(Kind::rdma) == 0, !list_rdma_devices().why_none.empty());
}

TEST(List, EveryGpuIsWhatItsOwnAddressFinds) {
  const auto devices = list_devices();
  if (count(Kind::gpu) == 0) GTEST_SKIP() << "no GPU: " << list_gpus().why_none;
  for (const Device& device : devices) {
    if (device.kind != Kind::gpu) continue;
    EXPECT_EQ(&find(devices, device.pci_address), &device);
    EXPECT_GT(device.memory, 0U);
    EXPECT_TRUE(supports(device, Capability::persistent_worker));
  }
}

TEST(Supports, ANoHasItsReasonAndAYesHasNone) {
  for (const Device& device : list_devices()) {
    for (unsigned i = 0; i < kCapabilities; ++i) {
      const auto support = supports(device, static_cast<Capability>(i));
      EXPECT_EQ(support.supported, support.reason.empty())
          << device.describe() << ", " << name_of(static_cast<Capability>(i));
    }
  }
}

TEST(Supports, EveryCapabilityHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (unsigned i = 0; i < kCapabilities; ++i) names.insert(name_of(static_cast<Capability>(i)));
  EXPECT_EQ(names.size(), kCapabilities);
  EXPECT_EQ(names.count("unknown"), 0U);
}

}  // namespace
}  // namespace offload::device
