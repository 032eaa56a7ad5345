#include "apps/server/admission/reserved_descriptors.hpp"

#include <gtest/gtest.h>

namespace offload::server {
namespace {

constexpr int kMany = 100'000;
constexpr std::size_t kChannels = 8;

// A worker brings a connection for each channel beside its control connection, and before it
// strangers may have taken all that they can.
TEST(ReservedDescriptors, AWorkerAttachesOverANetworkAmongStrangers) {
  EXPECT_GT(reserved_descriptors(kMany, /*local=*/false, kChannels, 0),
            static_cast<int>(comch::PendingConnections::kMost + kChannels));
}

// Memory, and two doorbells, at least.
TEST(ReservedDescriptors, AWorkerOfThisMachineAttaches) {
  EXPECT_GT(reserved_descriptors(kMany, /*local=*/true, kChannels, 0),
            static_cast<int>(3 * kChannels));
}

TEST(ReservedDescriptors, EachDoorHasItsOwn) {
  for (const bool local : {false, true}) {
    EXPECT_EQ(reserved_descriptors(kMany, local, 1, 2) - reserved_descriptors(kMany, local, 1, 0),
              2 * telemetry::HttpServer::kDescriptors);
  }
}

TEST(ReservedDescriptors, EachChannelHasItsOwn) {
  const auto for_channels = [](bool local, std::size_t channels) {
    return reserved_descriptors(kMany, local, channels, 0) -
           reserved_descriptors(kMany, local, 0, 0);
  };
  for (const std::size_t channels : {std::size_t{1}, std::size_t{2}, kChannels}) {
    EXPECT_EQ(for_channels(true, channels), kReservedALocalChannel * static_cast<int>(channels));
    EXPECT_EQ(for_channels(false, channels), kReservedAChannel * static_cast<int>(channels));
  }
}

TEST(ReservedDescriptors, ClientsHaveHalfOfFewAtLeast) {
  EXPECT_EQ(reserved_descriptors(60, /*local=*/false, kChannels, 1), 30);
}

}  // namespace
}  // namespace offload::server
