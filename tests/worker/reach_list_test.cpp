#include "apps/worker/reach_list.hpp"

#include <gtest/gtest.h>

namespace offload::worker {
namespace {

const device::Device kGpu{device::Kind::gpu, 0, "a GPU", "0000:01:00.0", -1, 0};
const device::Device kCard{device::Kind::rdma, 1, "no-such-card", {}, -1, 0};

TEST(ReachList, TakesACardAndAGpu) {
  EXPECT_EQ(reach_list({}), "");
  EXPECT_EQ(reach_list({kGpu}), "");
  EXPECT_EQ(reach_list({kCard}), "");
}

TEST(ReachList, SaysWhyNothingCouldBeTried) {
  const std::string text = reach_list({kGpu, kCard});
  const std::string begin =
      "rdma:1 accesses memory of gpu:0 in an unknown way, because the test failed: ";
  EXPECT_EQ(text.find(begin), 0U) << text;
  EXPECT_GT(text.size(), begin.size() + 10) << text;  // the reason depends on the machine
}

}  // namespace
}  // namespace offload::worker
