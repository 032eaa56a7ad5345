#include "tasks/sync/support.hpp"

#include <gtest/gtest.h>

namespace offload::sync {
namespace {

using device::Device;
using device::Kind;

TEST(ExportSupport, IsTheHostsToProcessesAndACardsToPeers) {
  Device host;
  Device card;
  card.kind = Kind::rdma;
  EXPECT_TRUE(supports_export(host, ExportTarget::process));
  EXPECT_TRUE(supports_export(card, ExportTarget::peer));
  for (const ExportTarget target :
       {ExportTarget::gpu, ExportTarget::gpu_add, ExportTarget::peer, ExportTarget::dpa}) {
    const auto support = supports_export(host, target);
    EXPECT_FALSE(support);
    EXPECT_NE(support.reason, "");
  }
  EXPECT_FALSE(supports_export(card, ExportTarget::process));
  EXPECT_FALSE(supports_export(card, ExportTarget::dpa));
}

TEST(ExportSupport, OfEachGpuIsWhatItCan) {
  const auto gpus = device::list_gpus();
  if (gpus.devices.empty()) GTEST_SKIP() << "no GPU: " << gpus.why_none;
  for (const Device& gpu : gpus.devices) {
    EXPECT_EQ(supports_export(gpu, ExportTarget::gpu).supported,
              supports(gpu, device::Capability::mapped_host_memory).supported);
    EXPECT_EQ(supports_export(gpu, ExportTarget::gpu_add).supported,
              supports(gpu, device::Capability::native_host_atomics).supported);
  }
}

}  // namespace
}  // namespace offload::sync
