#include "apps/worker/device_list.hpp"

#include <gtest/gtest.h>

namespace offload::worker {
namespace {

TEST(DeviceList, HasALineForEachCapability) {
  const device::Device device{device::Kind::rdma,
                              3,
                              "mlx5_3",
                              "0000:03:00.0",
                              1,
                              3ULL << 29,
                              device::FunctionKind::physical};
  const std::string text = describe(device);
  const std::string begin = device.describe() +
                            "\n  memory 1.5 GiB\n  function PF\n  NUMA node 1\n"
                            "  shared_memory ";
  EXPECT_EQ(text.substr(0, begin.size()), begin);
  EXPECT_EQ(std::ranges::count(text, '\n'), std::ptrdiff_t{4 + device::kCapabilities});
  for (std::size_t i = 0; i < device::kCapabilities; ++i) {
    const auto capability = static_cast<device::Capability>(i);
    const std::string line = fmt::format("\n  {:<20} ", device::name_of(capability));
    EXPECT_NE(text.find(line), std::string::npos) << line << " is not in " << text;
  }
  EXPECT_TRUE(text.ends_with("\n  copies               no: " +
                             device::supports(device, device::Capability::copies).reason + "\n"))
      << text;
}

TEST(DeviceList, LeavesOutWhatIsNotKnown) {
  device::Device device;
  device.name = "host";
  const std::string text = describe(device);
  EXPECT_EQ(text.find("\n  memory"), std::string::npos) << text;
  EXPECT_EQ(text.find("\n  function"), std::string::npos) << text;
  EXPECT_EQ(text.find("\n  NUMA node"), std::string::npos) << text;
  device.numa_node = 0;
  EXPECT_NE(describe(device).find("\n  NUMA node 0\n"), std::string::npos);
}

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
