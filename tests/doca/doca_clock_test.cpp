#include <doca_clock.h>

#include "tests/doca/dma_fixture.hpp"

namespace offload::doca {
namespace {

constexpr std::int64_t kBillion = 1'000'000'000;

std::int64_t nanoseconds(const timespec& time) {
  return time.tv_sec * kBillion + time.tv_nsec;
}

std::int64_t now(clockid_t id) {
  timespec time{};
  EXPECT_EQ(::clock_gettime(id, &time), 0);
  return nanoseconds(time);
}

/// The clocks of a host device.
class DocaClockTest : public testing::Test {
 protected:
  DocaClockTest() : dev_(open_first_device()) {
    EXPECT_EQ(doca_clock_create(dev_, &clock_), DOCA_SUCCESS);
  }
  ~DocaClockTest() override {
    EXPECT_EQ(doca_dev_close(dev_), DOCA_ERROR_IN_USE);
    EXPECT_EQ(doca_clock_destroy(clock_), DOCA_SUCCESS);
    EXPECT_EQ(doca_dev_close(dev_), DOCA_SUCCESS);
  }
  /// Expects that a clock is one of the system's.
  void expect_clock(std::uint64_t type, clockid_t id) {
    doca_clock_timespec_t time{};
    const std::int64_t before = now(id);
    EXPECT_EQ(doca_clock_get_timestamp(clock_, type, &time), DOCA_SUCCESS);
    EXPECT_LE(before, nanoseconds(time.ts));
    EXPECT_LE(nanoseconds(time.ts), now(id));
  }

  doca_dev* dev_;
  doca_clock* clock_ = nullptr;
};

TEST_F(DocaClockTest, TheClocksOfAHostDeviceAreThoseOfTheSystem) {
  const doca_devinfo* const info = doca_dev_as_devinfo(dev_);
  EXPECT_EQ(doca_clock_cap_nic_free_running_is_supported(info), DOCA_SUCCESS);
  EXPECT_EQ(doca_clock_cap_nic_real_time_is_supported(info), DOCA_SUCCESS);
  EXPECT_EQ(doca_clock_cap_nic_dpa_timer_is_supported(info), DOCA_ERROR_NOT_SUPPORTED);
  expect_clock(DOCA_CLOCK_NIC_FREE_RUNNING, CLOCK_MONOTONIC_RAW);
  expect_clock(DOCA_CLOCK_NIC_REAL_TIME, CLOCK_REALTIME);
  expect_clock(DOCA_CLOCK_HOST_REAL_TIME, CLOCK_REALTIME);
  expect_clock(DOCA_CLOCK_HOST_MONOTONIC, CLOCK_MONOTONIC);
  expect_clock(DOCA_CLOCK_HOST_MONOTONIC_RAW, CLOCK_MONOTONIC_RAW);
  doca_clock_timespec_t first{};
  doca_clock_timespec_t second{};
  EXPECT_EQ(doca_clock_get_timestamp(clock_, DOCA_CLOCK_HOST_COUNTER_CYCLES, &first), DOCA_SUCCESS);
  EXPECT_EQ(doca_clock_get_timestamp(clock_, DOCA_CLOCK_HOST_COUNTER_CYCLES, &second),
            DOCA_SUCCESS);
  EXPECT_LE(first.counter, second.counter);  // the counters of some processors are slow
  EXPECT_EQ(doca_clock_get_timestamp(clock_, DOCA_CLOCK_NIC_DPA_TIMER, &first),
            DOCA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(doca_clock_get_timestamp(clock_, 3, &first), DOCA_ERROR_NOT_SUPPORTED);
}

TEST_F(DocaClockTest, APairIsOfOneMoment) {
  doca_clock_timespec_t primary{};
  doca_clock_timespec_t device{};
  std::uint64_t margin = 0;
  const std::int64_t before = now(CLOCK_MONOTONIC_RAW);
  ASSERT_EQ(doca_clock_get_crosstimestamp(clock_, DOCA_CLOCK_HOST_MONOTONIC_RAW,
                                          DOCA_CLOCK_NIC_FREE_RUNNING, &primary, &device, &margin),
            DOCA_SUCCESS);
  EXPECT_LE(before, nanoseconds(primary.ts));
  EXPECT_LE(nanoseconds(primary.ts), now(CLOCK_MONOTONIC_RAW));
  // It is the same clock, so that the two differ by no more than the margin says.
  EXPECT_LE(std::abs(nanoseconds(primary.ts) - nanoseconds(device.ts)),
            static_cast<std::int64_t>(margin));
  ASSERT_EQ(doca_clock_get_crosstimestamp(clock_, DOCA_CLOCK_HOST_COUNTER_CYCLES,
                                          DOCA_CLOCK_NIC_REAL_TIME, &primary, &device, &margin),
            DOCA_SUCCESS);
  EXPECT_NE(primary.counter, 0U);
  EXPECT_NE(margin, 0U);
  EXPECT_EQ(doca_clock_get_crosstimestamp(clock_, DOCA_CLOCK_HOST_MONOTONIC,
                                          DOCA_CLOCK_HOST_REAL_TIME, &primary, &device, &margin),
            DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_clock_get_crosstimestamp(clock_, DOCA_CLOCK_HOST_MONOTONIC,
                                          DOCA_CLOCK_NIC_DPA_TIMER, &primary, &device, &margin),
            DOCA_ERROR_NOT_SUPPORTED);
}

TEST_F(DocaClockTest, NullIsRefused) {
  doca_clock_timespec_t time{};
  EXPECT_EQ(doca_clock_cap_nic_free_running_is_supported(nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_clock_cap_nic_real_time_is_supported(nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_clock_cap_nic_dpa_timer_is_supported(nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_clock_create(dev_, nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_clock_destroy(nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_clock_get_timestamp(nullptr, DOCA_CLOCK_HOST_REAL_TIME, &time),
            DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_clock_get_crosstimestamp(clock_, DOCA_CLOCK_HOST_REAL_TIME,
                                          DOCA_CLOCK_NIC_REAL_TIME, &time, nullptr, nullptr),
            DOCA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace offload::doca
