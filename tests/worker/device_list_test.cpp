#include "apps/worker/device_list.hpp"

#include <gtest/gtest.h>

namespace offload::worker {
namespace {

TEST(RepresentorList, IsEmptyWithoutAny) {
  EXPECT_EQ(representor_list({}), "");
}

TEST(RepresentorList, SaysWhatEachIs) {
  using device::FunctionKind;
  EXPECT_EQ(
      representor_list(
          {{"pf0hpf", "c1pf0", {FunctionKind::physical, 1, 0, 0}, "a1b2", "0000:03:00.0", 0},
           {"eth4", "pf0sf88", {FunctionKind::subfunction, 0, 0, 88}, "a1b2", "0000:03:00.0", 1}}),
      "representor pf0hpf, for PF 0 of controller 1, by 0000:03:00.0\n"
      "  port c1pf0, device port 0, switch a1b2\n"
      "representor eth4, for SF 88 of PF 0 of controller 0, by 0000:03:00.0\n"
      "  port pf0sf88, device port 1, switch a1b2\n");
}

}  // namespace
}  // namespace offload::worker
