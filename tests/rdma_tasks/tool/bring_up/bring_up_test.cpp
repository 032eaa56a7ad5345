#include "apps/rdma_tasks/bring_up/bring_up.hpp"

#include <csignal>

#include "tests/rdma_tasks/tool/bring_up/bring_up_fixture.hpp"

/// The bring-up of a device without card rings. tests/rdma_tasks/tool/matrix runs it over a device.
namespace offload::rdma_tool {
namespace {

class BringUpTest : public BringUpFixture {};

TEST_F(BringUpTest, ADeviceInOrderIsReady) {
  EXPECT_TRUE(run()) << text();
  expect("device", StepVerdict::good, "fake0: emulated (on no bus)");
  expect("port", StepVerdict::good, "port 1: ACTIVE, Ethernet, MTU 1024, GID 10.0.0.1 (index 1)");
  expect("path", StepVerdict::good, "--comch rdma:10.0.0.1 takes fake0 port 1, GID 10.0.0.1");
  expect("initiator", StepVerdict::good, "device functions on CPU threads");
  expect("memory", StepVerdict::good, "16 MiB of host memory");
  expect("GPU memory", StepVerdict::note, "not tried: --gpu none");
  expect("queue pairs", StepVerdict::good, "queue pairs 100 and 101 (RC) on fake0 are connected");
  expect("write", StepVerdict::good, "writes of 8 to 65536 bytes are right");
  expect("send", StepVerdict::good, "messages of 8 to 65536 bytes are right");
  expect("order", StepVerdict::good, "in order in all 100 lists");
  expect("immediate", StepVerdict::good, "arrived after its data");
  expect("atomic", StepVerdict::good, "arrived after its data");
  expect("card rings", StepVerdict::note, "not available: ");
  expect("proxy rings", StepVerdict::good, "a thread carries them out on fake0");
  expect("proxy write", StepVerdict::good, "100 writes of 4096 bytes are right");
  expect("proxy immediate", StepVerdict::good, "100 times each way");
  expect("proxy atomic", StepVerdict::good, "100 times each way");
  expect("proxy rate", StepVerdict::good, " entries/s of 64 bytes");
  expect("data path", StepVerdict::good,
         "auto is cpu without a GPU; with gpu a thread carries out its entries");
  EXPECT_FALSE(has("card write"));
}

// Adaptive routing does the same. No data path relies on the order of plain writes.
TEST_F(BringUpTest, WritesThatChangePlacesAreSeenAndNoError) {
  device_.fault = Fault::shuffles;
  EXPECT_TRUE(run()) << text();
  expect("order", StepVerdict::good, "out of order in 100 of 100 lists");
}

TEST_F(BringUpTest, WithoutAtomicsTheDataPathIsThatOfTheCpu) {
  fake().device.atomic_cap = IBV_ATOMIC_NONE;
  EXPECT_TRUE(run()) << text();
  expect("device", StepVerdict::good, "no atomic operations");
  expect("atomic", StepVerdict::note, "no atomic operations");
  expect("data path", StepVerdict::good,
         "auto is cpu, because the device has no atomic operations");
  EXPECT_FALSE(has("proxy atomic"));
}

TEST_F(BringUpTest, ADeviceThatIsNotThereIsAnError) {
  options_.run.path.device = "mlx5_9";
  expect_error("device", "mlx5_9", "rdma link");
  EXPECT_EQ(findings_.size(), 1U);
}

TEST_F(BringUpTest, ADeviceThatMayNotBeOpenedIsAnError) {
  fake().fail_call = "ibv_open_device";
  fake().fail_with = EACCES;
  expect_error("device", "open RDMA device fake0", "as root");
}

TEST_F(BringUpTest, APortThatIsDownIsAnError) {
  fake().port.state = IBV_PORT_DOWN;
  expect_error("port", "port 1: DOWN, Ethernet", "ip link set its interface up");
  fake().port.link_layer = IBV_LINK_LAYER_INFINIBAND;
  expect_error("port", "port 1: DOWN, InfiniBand", "subnet manager");
}

TEST_F(BringUpTest, APortWithoutAnAddressIsAnError) {
  fake().gids.clear();
  expect_error("port", "it has no GID", "ip address add");
}

TEST_F(BringUpTest, ALinkLocalAddressIsAWarning) {
  fake().gids[0].gid = rdma::parse_gid("fe80::1");
  EXPECT_TRUE(run()) << text();
  expect("port", StepVerdict::warning, "fe80::1 (index 1), which no router forwards");
}

TEST_F(BringUpTest, APartitionThatThePortLacksIsAnError) {
  options_.run.path.pkey = 0x8003;
  expect_error("path", "no partition 0x8003", "--pkey");
}

TEST_F(BringUpTest, AGpuThatIsNotThereIsAnError) {
  options_.run.gpu = "gpu:99";
  expect_error("initiator", "", "--gpu none");
}

TEST_F(BringUpTest, MemoryThatCannotBeLockedIsAnError) {
  fake().fail_call = "ibv_reg_mr";
  fake().fail_with = ENOMEM;
  expect_error("memory", "16 MiB of host memory: ", "LimitMEMLOCK=infinity");
  EXPECT_FALSE(has("queue pairs"));
  expect("data path", StepVerdict::error, "none works");
}

// An mlx5 card whose registers cannot be mapped refuses them.
TEST_F(BringUpTest, CompletionsThatCannotBeMadeAreNoFaultOfTheInitiator) {
  fake().fail_call = "ibv_create_cq";
  expect_error("queue pairs", "completion queue", "registers");
  EXPECT_FALSE(has("initiator"));
}

TEST_F(BringUpTest, QueuePairsThatCannotBeMadeAreAnError) {
  fake().fail_call = "ibv_create_qp";
  expect_error("queue pairs", "make an RC queue pair on fake0", "dmesg");
}

TEST_F(BringUpTest, AWriteThatFailsHasItsStatus) {
  device_.fault = Fault::fails;
  expect_error("write", "a status", "between two machines");
}

TEST_F(BringUpTest, AWrongByteIsAnError) {
  device_.fault = Fault::wrong_byte;
  expect_error("write", "after a write, byte 4 of 8 is 0x", "hw_counters");
}

TEST_F(BringUpTest, AWaitHasAnEnd) {
  device_.fault = Fault::stops;
  options_.run.timeout = std::chrono::milliseconds(20);
  expect_error("write", "timed out after 0.02 s waiting for the completion of a write", "dmesg");
}

TEST_F(BringUpTest, AFlagBeforeItsDataIsAnError) {
  device_.fault = Fault::loses_write;
  expect_error("immediate", "after the completion of an immediate, byte ", "--data-path cpu");
}

class GpuBringUpTest : public BringUpFixture, public testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override { take_gpu(GetParam()); }
};

TEST_P(GpuBringUpTest, AKernelPostsToTheRingsOfAnEmulator) {
  EXPECT_TRUE(run()) << text();
  expect("initiator", StepVerdict::good, "a kernel on gpu:0");
  expect("GPU memory", StepVerdict::good, "fake0 accesses it by its ");
  expect("proxy write", StepVerdict::good, "100 writes of 4096 bytes are right");
  expect("proxy immediate", StepVerdict::good, "100 times each way");
  expect("proxy atomic", StepVerdict::good, "100 times each way");
  expect("data path", StepVerdict::good,
         "--data-path auto is gpu for a persistent kernel: a thread carries out its entries");
}

INSTANTIATE_TEST_SUITE_P(gpu, GpuBringUpTest, testing::Values("gpu:0"));

TEST_F(BringUpTest, ASignalEndsIt) {
  std::raise(SIGTERM);
  EXPECT_THROW(run(), core::Interrupted);
}

}  // namespace
}  // namespace offload::rdma_tool
