#include "apps/rdma_tasks/bring_up/lane_loopback.hpp"

#include "tests/rdma_tasks/tool/bring_up/bring_up_fixture.hpp"
#include "tests/support/thrown.hpp"

/// Lanes over the rings of an emulator, behind which the test's device makes faults.
namespace offload::rdma_tool {
namespace {

using support::thrown_by;

class LaneLoopbackTest : public BringUpFixture {
 protected:
  std::string fault_of(Fault fault, std::string (LaneLoopback::*operation)()) {
    Environment environment(options_.run, signals_, 512);
    LaneLoopback loopback(environment, Rings::proxy);
    device_.fault = fault;
    const auto error = thrown_by([&] { (loopback.*operation)(); });
    device_.fault = Fault::none;
    return error.what();
  }
};

TEST_F(LaneLoopbackTest, AWrongByteIsFound) {
  EXPECT_NE(fault_of(Fault::wrong_byte, &LaneLoopback::write).find("byte 2048 is 0x"),
            std::string::npos);
}

TEST_F(LaneLoopbackTest, AFlagBeforeItsDataIsFound) {
  options_.run.timeout = core::seconds(1);  // of the end that waits for an answer
  EXPECT_NE(fault_of(Fault::loses_write, &LaneLoopback::flag_by_atomic).find("iteration 0: byte "),
            std::string::npos);
}

TEST_F(LaneLoopbackTest, AnOperationThatFailsEndsTheRun) {
  // The emulator and the lane both report it.
  const std::string error = fault_of(Fault::fails, &LaneLoopback::write);
  EXPECT_TRUE(error.find("a status") != std::string::npos ||
              error.find("iteration ") != std::string::npos)
      << error;
}

TEST_F(LaneLoopbackTest, AWaitHasAnEnd) {
  options_.run.timeout = std::chrono::milliseconds(50);
  EXPECT_NE(fault_of(Fault::stops, &LaneLoopback::write).find("timed out waiting for"),
            std::string::npos);
}

}  // namespace
}  // namespace offload::rdma_tool
