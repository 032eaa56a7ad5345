#include "rdma_tasks/task_support.hpp"

#include "tests/rdma/fake_fixture.hpp"

namespace offload::rdma {
namespace {

using test::fake;

using TaskSupportTest = FakeDeviceTest;

TEST_F(TaskSupportTest, ADeviceWithAllHasAllTasks) {
  const DeviceContext device("fake0");
  EXPECT_TRUE(supports_task<SendTask>(device));
  EXPECT_TRUE(supports_task<ReceiveTask>(device));
  EXPECT_TRUE(supports_task<WriteTask>(device));
  EXPECT_TRUE(supports_task<ReadTask>(device));
  EXPECT_TRUE(supports_task<CompareAndSwapTask>(device));
  EXPECT_TRUE(supports_task<FetchAndAddTask>(device));
  EXPECT_TRUE(supports_task<RemoteSyncEventTask>(device));
}

TEST_F(TaskSupportTest, UcHasSendsAndWrites) {
  const DeviceContext device("fake0");
  EXPECT_TRUE(supports_task<SendTask>(device, QpType::uc));
  EXPECT_TRUE(supports_task<WriteTask>(device, QpType::uc));
  EXPECT_TRUE(supports_task<RemoteSyncEventTask>(device, QpType::uc));
  EXPECT_FALSE(supports_task<ReadTask>(device, QpType::uc));
  EXPECT_FALSE(supports_task<FetchAndAddTask>(device, QpType::uc));
  EXPECT_FALSE(supports_task<SendTask>(device, QpType::ud));
}

TEST_F(TaskSupportTest, WhatADeviceLacksIsSaid) {
  fake().device.atomic_cap = IBV_ATOMIC_NONE;
  const DeviceContext without_atomics("fake0");
  EXPECT_TRUE(supports_task<ReadTask>(without_atomics));
  EXPECT_EQ(supports_task<CompareAndSwapTask>(without_atomics).reason, "the device has no atomics");
  fake().device.max_qp_rd_atom = 0;
  const DeviceContext without_reads("fake0");
  EXPECT_FALSE(supports_task<ReadTask>(without_reads));
  EXPECT_TRUE(supports_task<WriteTask>(without_reads));
}

TEST_F(TaskSupportTest, AnIwarpDeviceHasNone) {
  const DeviceContext device("fake0");
  device.get()->device->transport_type = IBV_TRANSPORT_IWARP;
  EXPECT_EQ(device.supports(QpType::rc).reason,
            "an iWARP queue pair needs its own rdma_cm_id, which is not supported");
  EXPECT_FALSE(device.supports(QpType::uc));
  EXPECT_FALSE(supports_task<SendTask>(device));
}

}  // namespace
}  // namespace offload::rdma
