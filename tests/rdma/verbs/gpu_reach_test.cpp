#include "rdma/verbs/gpu_reach.hpp"

#include "core/error.hpp"
#include "tests/rdma/fake_fixture.hpp"

namespace offload::rdma {
namespace {

using test::fake;

class GpuReachTest : public FakeDeviceTest {
 protected:
  /// Returns a range like a GPU's, with a descriptor that is no dma-buf, which the fake ignores.
  static memory::Range of_gpu(bool exported) {
    memory::Range range = memory::allocate_range(4096);
    range.location = memory::Location::device;
    if (exported) range.descriptor = {memory::DescriptorKind::dma_buf, 0, 0};
    return range;
  }
  memory::Range choose(bool exported) {
    return choose_range(
        domain_, [=] { return of_gpu(exported); }, [] { return memory::allocate_range(4096); });
  }

  DeviceContext device_{"fake0"};
  ProtectionDomain domain_{device_};
};

TEST_F(GpuReachTest, ADmaBufIsFirst) {
  const GpuReach found = reach_of(domain_, of_gpu(true));
  EXPECT_EQ(found.way, Reach::dma_buf);
  EXPECT_EQ(found.describe(), "by its dma-buf");
  EXPECT_EQ(fake().calls.back(), "ibv_reg_dmabuf_mr");
  const memory::Range range = choose(true);
  EXPECT_EQ(range.location, memory::Location::device);
  EXPECT_EQ(range.descriptor.kind, memory::DescriptorKind::dma_buf);
}

TEST_F(GpuReachTest, AnAddressIsNext) {
  EXPECT_EQ(reach_of(domain_, of_gpu(false)).describe(),
            "by its address, because it has no dma-buf");
  fake().fail_call = "ibv_reg_dmabuf_mr";
  fake().fail_with = EOPNOTSUPP;
  const GpuReach found = reach_of(domain_, of_gpu(true));
  EXPECT_EQ(found.way, Reach::address);
  EXPECT_NE(found.why.find("the device refused its dma-buf"), std::string::npos) << found.why;
  const memory::Range range = choose(true);
  EXPECT_EQ(range.location, memory::Location::device);
  EXPECT_EQ(range.descriptor.kind, memory::DescriptorKind::none);
}

TEST_F(GpuReachTest, MemoryOfTheHostIsLast) {
  fake().fail_call = "ibv_reg_mr";
  fake().fail_with = EFAULT;
  const GpuReach found = reach_of(domain_, of_gpu(false));
  EXPECT_EQ(found.way, Reach::none);
  EXPECT_NE(found.why.find("it has no dma-buf and it refused its address"), std::string::npos);
  EXPECT_EQ(choose(false).location, memory::Location::host);
}

TEST_F(GpuReachTest, AGpuWithoutMemoryIsNoError) {
  const memory::Range range = choose_range(
      domain_,
      []() -> memory::Range { throw core::Error(core::ErrorCode::no_memory, "cudaMalloc"); },
      [] { return memory::allocate_range(4096); });
  EXPECT_EQ(range.location, memory::Location::host);
}

}  // namespace
}  // namespace offload::rdma
