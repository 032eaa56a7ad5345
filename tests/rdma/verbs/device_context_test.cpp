#include "rdma/verbs/device_context.hpp"

#include "tests/rdma/fake_fixture.hpp"
#include "tests/support/thrown.hpp"

namespace offload::rdma {
namespace {

using core::ErrorCode;
using support::thrown_by;
using test::fake;

using DeviceContextTest = FakeDeviceTest;

TEST_F(DeviceContextTest, ADeviceIsFoundByItsName) {
  const auto error = thrown_by([] { const DeviceContext device("mlx5_9"); });
  EXPECT_EQ(error.code(), ErrorCode::not_found);
  EXPECT_NE(std::string(error.what()).find("fake0"), std::string::npos);
  const auto devices = device::list_devices();
  const auto& listed = device::find(devices, "rdma:0");
  EXPECT_EQ(listed.name, "fake0");
  EXPECT_EQ(DeviceContext(listed).name(), "fake0");
  EXPECT_EQ(thrown_by([&] { const DeviceContext device(devices[0]); }).code(),
            ErrorCode::invalid_value);
}

TEST_F(DeviceContextTest, WithoutDevicesItIsSaidWhy) {
  fake().fail_call = "ibv_get_device_list";
  fake().fail_with = ENOSYS;
  EXPECT_NE(device::list_rdma_devices().why_none.find("ib_uverbs"), std::string::npos);
  fake().fail_call.clear();
  EXPECT_EQ(device::list_rdma_devices().why_none, "");
  fake().devices = 0;
  EXPECT_NE(device::list_rdma_devices().why_none, "");
}

TEST_F(DeviceContextTest, ADeviceTellsWhatItCan) {
  const DeviceContext device("fake0");
  EXPECT_EQ(device.attributes().max_qp_init_rd_atom, 8);
  EXPECT_EQ(device.attributes().max_qp_rd_atom, 16);
  EXPECT_EQ(device.attributes().atomic_cap, IBV_ATOMIC_HCA);
  EXPECT_EQ(device.attributes().phys_port_cnt, 1);
  EXPECT_TRUE(device.supports(QpType::uc));
  EXPECT_FALSE(device.supports_on_demand_paging());
  EXPECT_EQ(device.port().state, IBV_PORT_ACTIVE);
  EXPECT_EQ(device.port().link_layer, IBV_LINK_LAYER_ETHERNET);
  ASSERT_EQ(device.gids().size(), 1U);
  EXPECT_EQ(to_string(device.gids()[0].gid), "10.0.0.1");
  EXPECT_TRUE(device.gids(2).empty());
}

}  // namespace
}  // namespace offload::rdma
