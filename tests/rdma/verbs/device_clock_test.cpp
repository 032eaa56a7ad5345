#include "rdma/verbs/device_clock.hpp"

#include <gtest/gtest.h>

#include "tests/rdma/fake_clock.hpp"
#include "tests/rdma/fake_verbs.hpp"
#include "tests/support/thrown.hpp"

namespace offload::rdma {
namespace {

using namespace std::chrono_literals;
using core::ErrorCode;
using support::thrown_by;
using test::fake_clock;

class DeviceClockTest : public testing::Test {
 protected:
  DeviceClockTest() {
    test::reset_fake();
    test::give_clock();
  }
};

TEST_F(DeviceClockTest, CountsNanosecondsFromTheStartOfTheDevice) {
  const DeviceContext device("fake0");
  const DeviceClock clock(device);
  fake_clock().cycles = 156'250'000 * 3 + 156'250;  // three seconds and a millisecond
  EXPECT_EQ(clock.now(), 3s + 1ms);
  fake_clock().cycles = (std::uint64_t{1} << 53) + 1;
  EXPECT_EQ(clock.now(), 57'646'075'230'342'355ns);
}

TEST_F(DeviceClockTest, ADeviceWithoutAClockIsRefused) {
  fake_clock().kilohertz = 0;
  const DeviceContext no_frequency("fake0");
  EXPECT_EQ(thrown_by([&] { DeviceClock clock(no_frequency); }).code(), ErrorCode::not_supported);
  test::give_clock();
  fake_clock().is_read = false;
  EXPECT_EQ(thrown_by([&] { DeviceClock clock(no_frequency); }).code(), ErrorCode::not_supported);
  fake_clock().error = EIO;
  EXPECT_EQ(thrown_by([&] { DeviceClock clock(no_frequency); }).code(), ErrorCode::io_failed);
  test::fake().extend = nullptr;
  const DeviceContext old_driver("fake0");
  EXPECT_EQ(thrown_by([&] { DeviceClock clock(old_driver); }).code(), ErrorCode::not_supported);
}

}  // namespace
}  // namespace offload::rdma
