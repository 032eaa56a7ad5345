#include <doca_dev.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace offload::doca {
namespace {

/// The devices of a list of this test's environment.
class DocaDeviceTest : public testing::Test {
 protected:
  ~DocaDeviceTest() override {
    if (list_ != nullptr) {
      EXPECT_EQ(doca_devinfo_destroy_list(list_), DOCA_SUCCESS);
    }
    ::unsetenv("OFFLOAD_DOCA_DEVICES");
  }
  doca_error_t list(const char* devices) {
    ::setenv("OFFLOAD_DOCA_DEVICES", devices, 1);
    return doca_devinfo_create_list(&list_, &count_);
  }
  static std::string address(const doca_devinfo* info) {
    char text[DOCA_DEVINFO_PCI_ADDR_SIZE] = {};
    EXPECT_EQ(doca_devinfo_get_pci_addr_str(info, text), DOCA_SUCCESS);
    return text;
  }

  doca_devinfo** list_ = nullptr;
  std::uint32_t count_ = 0;
};

TEST_F(DocaDeviceTest, HostDevicesAreThoseOfTheEnvironment) {
  ASSERT_EQ(list("03:00.0/3b:00.0/3b:00.1,0001:AF:00.2"), DOCA_SUCCESS);
  ASSERT_GE(count_, 2U);
  EXPECT_EQ(address(list_[0]), "0000:03:00.0");
  EXPECT_EQ(address(list_[1]), "0001:af:00.2");
  std::uint8_t equal = 0;
  EXPECT_EQ(doca_devinfo_is_equal_pci_addr(list_[0], "03:00.0", &equal), DOCA_SUCCESS);
  EXPECT_EQ(equal, 1);
  EXPECT_EQ(doca_devinfo_is_equal_pci_addr(list_[0], "0000:03:00.1", &equal), DOCA_SUCCESS);
  EXPECT_EQ(equal, 0);
  EXPECT_EQ(doca_devinfo_is_equal_pci_addr(list_[0], "x", &equal), DOCA_ERROR_INVALID_VALUE);
  char name[64] = {};
  EXPECT_EQ(doca_devinfo_get_ibdev_name(list_[0], name, sizeof name), DOCA_ERROR_NOT_FOUND);
  EXPECT_EQ(doca_devinfo_get_iface_name(list_[0], name, sizeof name), DOCA_ERROR_NOT_FOUND);
  doca_pci_func_type type{};
  EXPECT_EQ(doca_devinfo_get_pci_func_type(list_[0], &type), DOCA_ERROR_NOT_SUPPORTED);
  std::uint32_t index = 0;
  EXPECT_EQ(doca_devinfo_get_sf_index(list_[0], &index), DOCA_ERROR_NOT_SUPPORTED);
}

TEST_F(DocaDeviceTest, WithoutTheVariableThereAreTheAddressesOfTheSamples) {
  ASSERT_EQ(doca_devinfo_create_list(&list_, &count_), DOCA_SUCCESS);
  ASSERT_GE(count_, 2U);
  EXPECT_EQ(address(list_[0]), "0000:03:00.0");
  EXPECT_EQ(address(list_[1]), "0000:b1:00.0");
}

TEST_F(DocaDeviceTest, AMalformedListIsRefused) {
  for (const char* text : {"host", "03:00.0,", "03:00.0/", "/03:00.0", "03:00.0 "}) {
    EXPECT_EQ(list(text), DOCA_ERROR_INVALID_VALUE) << text;
  }
}

TEST_F(DocaDeviceTest, ADeviceHasItsRepresentors) {
  ASSERT_EQ(list("03:00.0/3b:00.0/3b:00.1,3b:00.0"), DOCA_SUCCESS);
  std::uint8_t supported = 0;
  EXPECT_EQ(doca_devinfo_rep_cap_is_filter_net_supported(list_[0], &supported), DOCA_SUCCESS);
  EXPECT_EQ(supported, 1);
  EXPECT_EQ(doca_devinfo_rep_cap_is_filter_net_supported(list_[1], &supported), DOCA_SUCCESS);
  EXPECT_EQ(supported, 0);
  doca_dev* dev = nullptr;
  ASSERT_EQ(doca_dev_open(list_[0], &dev), DOCA_SUCCESS);
  EXPECT_EQ(address(doca_dev_as_devinfo(dev)), "0000:03:00.0");
  doca_devinfo_rep** reps = nullptr;
  std::uint32_t count = 0;
  ASSERT_EQ(doca_devinfo_rep_create_list(dev, DOCA_DEVINFO_REP_FILTER_NET, &reps, &count),
            DOCA_SUCCESS);
  ASSERT_EQ(count, 2U);
  char text[DOCA_DEVINFO_REP_VUID_SIZE] = {};
  EXPECT_EQ(doca_devinfo_rep_get_pci_addr_str(reps[1], text), DOCA_SUCCESS);
  EXPECT_STREQ(text, "0000:3b:00.1");
  std::uint8_t equal = 0;
  EXPECT_EQ(doca_devinfo_rep_is_equal_pci_addr(reps[0], "3b:00.0", &equal), DOCA_SUCCESS);
  EXPECT_EQ(equal, 1);
  EXPECT_EQ(doca_devinfo_rep_get_vuid(reps[0], text, sizeof text), DOCA_SUCCESS);
  EXPECT_STREQ(text, "0000:03:00.0/0000:3b:00.0");
  EXPECT_EQ(doca_devinfo_rep_get_vuid(reps[0], text, 8), DOCA_ERROR_INVALID_VALUE);
  doca_dev_rep* rep = nullptr;
  ASSERT_EQ(doca_dev_rep_open(reps[0], &rep), DOCA_SUCCESS);
  EXPECT_EQ(doca_devinfo_rep_destroy_list(reps), DOCA_SUCCESS);
  EXPECT_EQ(doca_devinfo_rep_get_pci_addr_str(doca_dev_rep_as_devinfo(rep), text), DOCA_SUCCESS);
  EXPECT_STREQ(text, "0000:3b:00.0");
  EXPECT_EQ(doca_dev_rep_close(rep), DOCA_SUCCESS);
  ASSERT_EQ(doca_devinfo_rep_create_list(dev, DOCA_DEVINFO_REP_FILTER_EMULATED, &reps, &count),
            DOCA_SUCCESS);
  EXPECT_EQ(count, 0U);
  EXPECT_EQ(doca_devinfo_rep_destroy_list(reps), DOCA_SUCCESS);
  EXPECT_EQ(doca_devinfo_rep_create_list(dev, 64, &reps, &count), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_dev_close(dev), DOCA_SUCCESS);
  ASSERT_EQ(doca_dev_open(list_[1], &dev), DOCA_SUCCESS);
  EXPECT_EQ(doca_devinfo_rep_create_list(dev, DOCA_DEVINFO_REP_FILTER_ALL, &reps, &count),
            DOCA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(doca_dev_close(dev), DOCA_SUCCESS);
}

TEST_F(DocaDeviceTest, NullIsRefused) {
  ASSERT_EQ(list("03:00.0/3b:00.0"), DOCA_SUCCESS);
  std::uint8_t equal = 0;
  EXPECT_EQ(doca_devinfo_create_list(nullptr, &count_), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_devinfo_destroy_list(nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_dev_open(list_[0], nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_dev_close(nullptr), DOCA_SUCCESS);
  EXPECT_EQ(doca_dev_as_devinfo(nullptr), nullptr);
  EXPECT_EQ(doca_devinfo_is_equal_pci_addr(nullptr, "03:00.0", &equal), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_devinfo_get_pci_addr_str(list_[0], nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_devinfo_get_pci_func_type(list_[0], nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_devinfo_get_iface_name(list_[0], nullptr, 0), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_devinfo_get_ibdev_name(list_[0], nullptr, 0), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_devinfo_get_sf_index(list_[0], nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_devinfo_rep_create_list(nullptr, 0, nullptr, nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_devinfo_rep_destroy_list(nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_devinfo_rep_cap_is_filter_net_supported(nullptr, &equal),
            DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_devinfo_rep_is_equal_pci_addr(nullptr, "03:00.0", &equal),
            DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_devinfo_rep_get_pci_addr_str(nullptr, nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_devinfo_rep_get_vuid(nullptr, nullptr, 0), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_dev_rep_open(nullptr, nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_dev_rep_close(nullptr), DOCA_SUCCESS);
  EXPECT_EQ(doca_dev_rep_as_devinfo(nullptr), nullptr);
}

}  // namespace
}  // namespace offload::doca
