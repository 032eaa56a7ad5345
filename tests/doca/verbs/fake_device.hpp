#pragma once

#include <doca_dev.h>
#include <gtest/gtest.h>

#include <cstdint>

#include "tests/rdma/fake_verbs.hpp"

namespace offload::doca {

/// The device of fake_verbs.cpp, opened by the calls of the interface.
class DocaFakeDeviceTest : public testing::Test {
 protected:
  DocaFakeDeviceTest() {
    rdma::test::reset_fake();
    doca_devinfo** list = nullptr;
    std::uint32_t count = 0;
    EXPECT_EQ(doca_devinfo_create_list(&list, &count), DOCA_SUCCESS);
    EXPECT_EQ(doca_dev_open(list[count - 1], &dev_), DOCA_SUCCESS);
    EXPECT_EQ(doca_devinfo_destroy_list(list), DOCA_SUCCESS);
    char name[DOCA_DEVINFO_IBDEV_NAME_SIZE] = {};
    EXPECT_EQ(doca_devinfo_get_ibdev_name(info(), name, sizeof name), DOCA_SUCCESS);
    EXPECT_STREQ(name, "fake0");
  }
  ~DocaFakeDeviceTest() override {
    EXPECT_EQ(doca_dev_close(dev_), DOCA_SUCCESS);
    EXPECT_EQ(rdma::test::fake().open_objects(), 0);
  }
  [[nodiscard]] const doca_devinfo* info() const { return doca_dev_as_devinfo(dev_); }

  doca_dev* dev_ = nullptr;
};

}  // namespace offload::doca
