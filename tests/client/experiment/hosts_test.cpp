#include "apps/client/experiment/hosts.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace offload::client {
namespace {

TEST(ClockOffset, IsFromTheMiddleOfTheShortestReading) {
  // The second answer took 2 s each way, the first 1 s there and 5 s back.
  const ClockOffset clock = offset_of({{10, 111, 16}, {20, 122, 24}, {30, 135, 39}});
  EXPECT_DOUBLE_EQ(clock.offset, 100);
  EXPECT_DOUBLE_EQ(clock.uncertainty, 2);
}

/// However the way is divided, the offset is within the uncertainty.
TEST(ClockOffset, IsWithinItsUncertainty) {
  for (const double there : {0.0, 0.25, 1.0}) {
    const ClockOffset clock = offset_of({{5, 5 + there - 7, 6}});
    EXPECT_LE(std::abs(clock.offset + 7), clock.uncertainty) << there;
  }
}

}  // namespace
}  // namespace offload::client
