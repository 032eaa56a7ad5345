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

TEST(ReservedDescriptors, ClientsHaveHalfOfFewAtLeast) {
  EXPECT_EQ(reserved_descriptors(60, /*local=*/false, kChannels, 1), 30);
}

}  // namespace
}  // namespace offload::server
