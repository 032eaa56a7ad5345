// Tests of calls that use an RDMA device: fake_verbs.cpp stands in for libibverbs.
#include <doca_ctx.h>
#include <doca_pe.h>
#include <doca_sync_event.h>

#include <vector>

#include "tests/doca/verbs/fake_device.hpp"

namespace offload::doca {
namespace {

using rdma::test::fake;

/// An event that peers publish.
class DocaRemoteEventTest : public DocaFakeDeviceTest {
 protected:
  DocaRemoteEventTest() {
    EXPECT_EQ(doca_sync_event_create(&event_), DOCA_SUCCESS);
    EXPECT_EQ(doca_sync_event_add_publisher_location_remote_net(event_), DOCA_SUCCESS);
    EXPECT_EQ(doca_sync_event_add_subscriber_location_cpu(event_, dev_), DOCA_SUCCESS);
    EXPECT_EQ(doca_sync_event_start(event_), DOCA_SUCCESS);
  }
  ~DocaRemoteEventTest() override {
    static_cast<void>(doca_sync_event_stop(event_));
    EXPECT_EQ(doca_sync_event_destroy(event_), DOCA_SUCCESS);
  }

  doca_sync_event* event_ = nullptr;
  const std::uint8_t* data_ = nullptr;
  std::size_t size_ = 0;
};

TEST_F(DocaRemoteEventTest, ItIsRegisteredWhileItIsExported) {
  ASSERT_EQ(doca_sync_event_export_to_remote_net(event_, &data_, &size_), DOCA_SUCCESS);
  EXPECT_EQ(fake().open["ibv_reg_mr"], 1);
  EXPECT_EQ(fake().open["ibv_alloc_pd"], 1);
  const std::uint8_t* again = nullptr;
  ASSERT_EQ(doca_sync_event_export_to_remote_net(event_, &again, &size_), DOCA_SUCCESS);
  EXPECT_EQ(again, data_);
  EXPECT_EQ(fake().open["ibv_reg_mr"], 1);
  EXPECT_EQ(doca_dev_close(dev_), DOCA_ERROR_IN_USE);
  EXPECT_EQ(doca_sync_event_stop(event_), DOCA_SUCCESS);
  EXPECT_EQ(fake().open["ibv_reg_mr"], 0);
  EXPECT_EQ(fake().open["ibv_alloc_pd"], 1) << "the device keeps its domain";
}

TEST_F(DocaRemoteEventTest, TheExportOfAContextEndsWithItsStop) {
  ASSERT_EQ(doca_sync_event_stop(event_), DOCA_SUCCESS);
  doca_sync_event* context = nullptr;
  ASSERT_EQ(doca_sync_event_create(&context), DOCA_SUCCESS);
  ASSERT_EQ(doca_sync_event_add_publisher_location_remote_net(context), DOCA_SUCCESS);
  ASSERT_EQ(doca_sync_event_add_subscriber_location_cpu(context, dev_), DOCA_SUCCESS);
  doca_pe* pe = nullptr;
  ASSERT_EQ(doca_pe_create(&pe), DOCA_SUCCESS);
  doca_ctx* const ctx = doca_sync_event_as_ctx(context);
  ASSERT_EQ(doca_pe_connect_ctx(pe, ctx), DOCA_SUCCESS);
  for (int round = 0; round < 2; ++round) {
    ASSERT_EQ(doca_ctx_start(ctx), DOCA_SUCCESS);
    EXPECT_EQ(fake().open["ibv_reg_mr"], 0);
    ASSERT_EQ(doca_sync_event_export_to_remote_net(context, &data_, &size_), DOCA_SUCCESS);
    EXPECT_EQ(fake().open["ibv_reg_mr"], 1);
    ASSERT_EQ(doca_ctx_stop(ctx), DOCA_SUCCESS);
    EXPECT_EQ(fake().open["ibv_reg_mr"], 0);
  }
  EXPECT_EQ(doca_sync_event_destroy(context), DOCA_SUCCESS);
  EXPECT_EQ(doca_pe_destroy(pe), DOCA_SUCCESS);
}

TEST_F(DocaRemoteEventTest, APeerCreatesItFromTheBytes) {
  ASSERT_EQ(doca_sync_event_export_to_remote_net(event_, &data_, &size_), DOCA_SUCCESS);
  doca_sync_event_remote_net* remote = nullptr;
  ASSERT_EQ(doca_sync_event_remote_net_create_from_export(dev_, data_, size_, &remote),
            DOCA_SUCCESS);
  EXPECT_EQ(doca_sync_event_remote_net_destroy(remote), DOCA_SUCCESS);
  std::vector<std::uint8_t> forged(data_, data_ + size_);
  forged.back() ^= 1;
  EXPECT_EQ(
      doca_sync_event_remote_net_create_from_export(dev_, forged.data(), forged.size(), &remote),
      DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_sync_event_remote_net_create_from_export(dev_, data_, size_ - 1, &remote),
            DOCA_ERROR_INVALID_VALUE);
}

TEST_F(DocaRemoteEventTest, ADeviceThatFailsIsTold) {
  fake().fail_call = "ibv_open_device";
  EXPECT_EQ(doca_sync_event_export_to_remote_net(event_, &data_, &size_), DOCA_ERROR_IO_FAILED);
  fake().fail_call.clear();
  EXPECT_EQ(doca_sync_event_export_to_remote_net(event_, &data_, &size_), DOCA_SUCCESS);
}

TEST_F(DocaRemoteEventTest, AnRdmaDeviceExportsToPeers) {
  EXPECT_EQ(doca_sync_event_cap_is_export_to_remote_net_supported(info()), DOCA_SUCCESS);
  EXPECT_EQ(doca_sync_event_cap_remote_net_is_create_from_export_supported(info()), DOCA_SUCCESS);
  EXPECT_EQ(doca_sync_event_cap_is_export_to_remote_pci_supported(info()),
            DOCA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(doca_sync_event_cap_is_create_from_export_supported(info()), DOCA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(doca_sync_event_cap_task_get_is_supported(info()), DOCA_SUCCESS);
}

}  // namespace
}  // namespace offload::doca
