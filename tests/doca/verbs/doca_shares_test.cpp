#include <doca_gpunetio.h>
#include <doca_umem.h>

#include <cstdlib>
#include <vector>

#include "tests/doca/verbs/verbs_fixture.hpp"

/// Ends of devices and GPUs that UMEMs and UARs still use, with softcard/preload as the device.
namespace offload::doca {
namespace {

class DocaSharesTest : public testing::Test {
 protected:
  DocaSharesTest() {
    ::setenv("OFFLOAD_DOCA_GPUS", "17:00.0", 1);
    EXPECT_EQ(doca_gpu_create("17:00.0", &gpu_), DOCA_SUCCESS);
    int count = 0;
    ibv_device** const list = (ibv_get_device_list)(&count);
    EXPECT_EQ(count, 1);
    EXPECT_STREQ(ibv_get_device_name(list[0]), "softcard0");
    EXPECT_EQ(doca_verbs_bridge_verbs_context_create(list[0], DOCA_VERBS_CONTEXT_CREATE_FLAGS_NONE,
                                                     &context_),
              DOCA_SUCCESS);
    ibv_free_device_list(list);
    EXPECT_EQ(doca_verbs_pd_create(context_, &pd_), DOCA_SUCCESS);
    EXPECT_EQ(doca_rdma_bridge_open_dev_from_pd(doca_verbs_bridge_verbs_pd_get_ibv_pd(pd_), &dev_),
              DOCA_SUCCESS);
  }
  ~DocaSharesTest() override {
    EXPECT_EQ(doca_verbs_pd_destroy(pd_), DOCA_SUCCESS);
    EXPECT_EQ(doca_verbs_context_destroy(context_), DOCA_SUCCESS);
  }

  static constexpr std::size_t kSize = 4096;
  doca_gpu* gpu_ = nullptr;
  doca_verbs_context* context_ = nullptr;
  doca_verbs_pd* pd_ = nullptr;
  doca_dev* dev_ = nullptr;
};

TEST_F(DocaSharesTest, AnUmemOfAGpuKeepsMemoryAndDevice) {
  void* memory = nullptr;
  ASSERT_EQ(doca_gpu_mem_alloc(gpu_, kSize, kSize, DOCA_GPU_MEM_TYPE_GPU, &memory, nullptr),
            DOCA_SUCCESS);
  doca_umem* umem = nullptr;
  ASSERT_EQ(
      doca_umem_gpu_create(gpu_, dev_, memory, kSize, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE, &umem),
      DOCA_SUCCESS);
  EXPECT_EQ(doca_gpu_destroy(gpu_), DOCA_SUCCESS);
  EXPECT_EQ(doca_dev_close(dev_), DOCA_SUCCESS);
  std::memset(memory, 1, kSize);  // it is still there: AddressSanitizer would report it
  EXPECT_EQ(doca_umem_destroy(umem), DOCA_SUCCESS);
}

TEST_F(DocaSharesTest, UmemsAndUarsOutliveTheirDevice) {
  std::vector<std::uint8_t> bytes(kSize);
  doca_umem* umem = nullptr;
  doca_uar* uar = nullptr;
  ASSERT_EQ(
      doca_umem_create(dev_, bytes.data(), bytes.size(), DOCA_ACCESS_FLAG_LOCAL_READ_WRITE, &umem),
      DOCA_SUCCESS);
  ASSERT_EQ(doca_uar_create(dev_, DOCA_UAR_ALLOCATION_TYPE_NONCACHE, &uar), DOCA_SUCCESS);
  EXPECT_EQ(doca_dev_close(dev_), DOCA_SUCCESS);
  EXPECT_EQ(doca_gpu_destroy(gpu_), DOCA_SUCCESS);
  EXPECT_EQ(doca_uar_destroy(uar), DOCA_SUCCESS);
  EXPECT_EQ(doca_umem_destroy(umem), DOCA_SUCCESS);
}

}  // namespace
}  // namespace offload::doca
