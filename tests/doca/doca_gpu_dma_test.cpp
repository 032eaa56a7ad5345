#include <doca_buf_array.h>
#include <doca_gpunetio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <doca_gpunetio_dev_buf.cuh>
#include <doca_gpunetio_dev_dma.cuh>
#include <thread>
#include <vector>

#include "tests/doca/dma_fixture.hpp"
#include "tests/doca/doca_gpu_fixture.hpp"
#include "tests/support/eventually.hpp"

namespace offload::doca {
namespace {

/// A context of copies for kernels, without a progress engine. Threads are its kernels.
class DocaGpuDmaTest : public MemoryTest {
 protected:
  DocaGpuDmaTest() {
    EXPECT_EQ(doca_dma_create(dev_, &dma_), DOCA_SUCCESS);
    ctx_ = doca_dma_as_ctx(dma_);
    EXPECT_EQ(doca_ctx_set_datapath_on_gpu(ctx_, gpu_.gpu), DOCA_SUCCESS);
    EXPECT_EQ(doca_dma_get_gpu_handle(dma_, &kernel_), DOCA_ERROR_BAD_STATE);
    EXPECT_EQ(doca_ctx_start(ctx_), DOCA_SUCCESS);
    EXPECT_EQ(doca_dma_get_gpu_handle(dma_, &kernel_), DOCA_SUCCESS);
    array_ = make_array(mmap_);
  }
  ~DocaGpuDmaTest() override {
    EXPECT_EQ(doca_buf_arr_destroy(array_), DOCA_SUCCESS);
    EXPECT_EQ(doca_ctx_stop(ctx_), DOCA_SUCCESS);
    EXPECT_EQ(doca_dma_destroy(dma_), DOCA_SUCCESS);
  }
  /// An array of one buffer, the whole mmap.
  doca_buf_arr* make_array(doca_mmap* mmap) const {
    doca_buf_arr* array = nullptr;
    EXPECT_EQ(doca_buf_arr_create(1, &array), DOCA_SUCCESS);
    EXPECT_EQ(doca_buf_arr_set_target_gpu(array, gpu_.gpu), DOCA_SUCCESS);
    EXPECT_EQ(doca_buf_arr_set_params(array, mmap, memory_.size(), 0), DOCA_SUCCESS);
    EXPECT_EQ(doca_buf_arr_start(array), DOCA_SUCCESS);
    return array;
  }
  static doca_gpu_buf* buf_of(doca_buf_arr* array) {
    doca_gpu_buf_arr* handle = nullptr;
    doca_gpu_buf* buf = nullptr;
    EXPECT_EQ(doca_buf_arr_get_gpu_handle(array, &handle), DOCA_SUCCESS);
    EXPECT_EQ(doca_gpu_dev_buf_get_buf(handle, 0, &buf), DOCA_SUCCESS);
    return buf;
  }
  doca_error_t copy(std::size_t from, std::size_t to, std::size_t length) {
    doca_gpu_buf* const buf = buf_of(array_);
    return doca_gpu_dev_dma_memcpy(kernel_, buf, from, buf, to, length);
  }
  /// Returns the number of copies that have ended.
  std::uint32_t ended() const {
    return static_cast<std::uint32_t>(offload_gpu_comch_load(&kernel_->queue.words->events));
  }
  /// Returns the error that the calls of kernels have within some time; DOCA_SUCCESS: none.
  doca_error_t error_of_calls() {
    doca_error_t error = DOCA_SUCCESS;
    support::eventually([&] { return (error = doca_gpu_dev_dma_commit(kernel_)) != DOCA_SUCCESS; });
    return error;
  }

  const HostGpu gpu_;
  doca_dma* dma_ = nullptr;
  doca_ctx* ctx_ = nullptr;
  doca_gpu_dma* kernel_ = nullptr;
  doca_buf_arr* array_ = nullptr;
};

TEST_F(DocaGpuDmaTest, ThreadsOfAKernelCopyWithOneCommit) {
  constexpr std::size_t kThreads = 4;
  for (std::size_t i = 0; i < kThreads; ++i) {
    std::memset(piece(i), static_cast<int>(i + 1), kPiece);
  }
  std::vector<std::thread> threads;
  std::atomic<int> failed{0};
  for (std::size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back(
        [&, i] { failed += copy(i * kPiece, (kThreads + i) * kPiece, kPiece) != DOCA_SUCCESS; });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_EQ(failed, 0);
  EXPECT_EQ(*piece(kThreads), 0) << "a copy began without a commit";
  ASSERT_EQ(doca_gpu_dev_dma_commit(kernel_), DOCA_SUCCESS);
  ASSERT_TRUE(support::eventually([&] { return ended() == kThreads; }));
  for (std::size_t i = 0; i < kThreads; ++i) {
    EXPECT_EQ(*piece(kThreads + i), i + 1);
    EXPECT_EQ(*(piece(kThreads + i) + kPiece - 1), i + 1);
  }
}

TEST_F(DocaGpuDmaTest, EntriesAreUsedAgainOnceTheirCopiesHaveEnded) {
  doca_error_t status = DOCA_SUCCESS;
  std::size_t count = 0;
  while ((status = copy(0, kPiece, 1)) == DOCA_SUCCESS) ++count;
  EXPECT_EQ(status, DOCA_ERROR_AGAIN);
  EXPECT_EQ(count, 1024U);
  ASSERT_EQ(doca_gpu_dev_dma_commit(kernel_), DOCA_SUCCESS);
  EXPECT_TRUE(support::eventually([&] { return copy(0, kPiece, 1) == DOCA_SUCCESS; }));
}

TEST_F(DocaGpuDmaTest, ACopyOutsideOfItsMmapFails) {
  ASSERT_EQ(copy(0, memory_.size() - 1, 2), DOCA_SUCCESS);
  EXPECT_EQ(error_of_calls(), DOCA_ERROR_IO_FAILED);
  EXPECT_EQ(copy(0, kPiece, 1), DOCA_ERROR_IO_FAILED);
  EXPECT_EQ(copy(0, kPiece, std::size_t{1} << 32), DOCA_ERROR_INVALID_VALUE);
  // A new start makes it whole again.
  ASSERT_EQ(doca_ctx_stop(ctx_), DOCA_SUCCESS);
  ASSERT_EQ(doca_ctx_start(ctx_), DOCA_SUCCESS);
  ASSERT_EQ(doca_dma_get_gpu_handle(dma_, &kernel_), DOCA_SUCCESS);
  EXPECT_EQ(copy(0, kPiece, 1), DOCA_SUCCESS);
}

TEST_F(DocaGpuDmaTest, ACopyToAReadOnlyMmapFails) {
  std::vector<std::uint8_t> bytes(memory_.size());
  doca_mmap* other = nullptr;
  ASSERT_EQ(doca_mmap_create(&other), DOCA_SUCCESS);
  ASSERT_EQ(doca_mmap_set_memrange(other, bytes.data(), bytes.size()), DOCA_SUCCESS);
  ASSERT_EQ(doca_mmap_set_permissions(other, DOCA_ACCESS_FLAG_LOCAL_READ_ONLY), DOCA_SUCCESS);
  ASSERT_EQ(doca_mmap_add_dev(other, dev_), DOCA_SUCCESS);
  ASSERT_EQ(doca_mmap_start(other), DOCA_SUCCESS);
  doca_buf_arr* const array = make_array(other);
  *piece(0) = 1;
  ASSERT_EQ(doca_gpu_dev_dma_memcpy(kernel_, buf_of(array_), 0, buf_of(array), 0, 1), DOCA_SUCCESS);
  EXPECT_EQ(error_of_calls(), DOCA_ERROR_IO_FAILED);
  EXPECT_EQ(bytes[0], 0);
  EXPECT_EQ(doca_buf_arr_destroy(array), DOCA_SUCCESS);
  EXPECT_EQ(doca_mmap_destroy(other), DOCA_SUCCESS);
}

TEST_F(DocaGpuDmaTest, AStopEndsTheCallsOfKernels) {
  doca_dma_task_memcpy* task = nullptr;
  doca_buf* const from = source(0, 1);
  doca_buf* const to = destination(1);
  EXPECT_EQ(doca_dma_task_memcpy_alloc_init(dma_, from, to, {}, &task), DOCA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(doca_buf_dec_refcount(from, nullptr), DOCA_SUCCESS);
  EXPECT_EQ(doca_buf_dec_refcount(to, nullptr), DOCA_SUCCESS);
  EXPECT_EQ(doca_dma_destroy(dma_), DOCA_ERROR_BAD_STATE);
  ASSERT_EQ(doca_ctx_stop(ctx_), DOCA_SUCCESS);
  EXPECT_EQ(copy(0, kPiece, 1), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_gpu_dev_dma_commit(kernel_), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_dma_get_gpu_handle(nullptr, &kernel_), DOCA_ERROR_INVALID_VALUE);
}

TEST(DocaGpu, AHostGpuExportsNoDmaBuf) {
  const HostGpu gpu;
  void* memory = nullptr;
  int fd = -1;
  ASSERT_EQ(doca_gpu_mem_alloc(gpu.gpu, 4096, 4096, DOCA_GPU_MEM_TYPE_GPU, &memory, nullptr),
            DOCA_SUCCESS);
  EXPECT_EQ(doca_gpu_dmabuf_fd(gpu.gpu, memory, 4096, &fd), DOCA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(doca_gpu_dmabuf_fd(gpu.gpu, memory, 0, &fd), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_gpu_dmabuf_fd(gpu.gpu, memory, 4096, nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(fd, -1);
  EXPECT_EQ(doca_gpu_mem_free(gpu.gpu, memory), DOCA_SUCCESS);
}

/// A task to memory that no open GPU has fails, and so do its mmap's invalid ranges.
TEST_F(DmaTest, MemoryOfADmaBufIsNotThatOfTheProcessor) {
  const int file = ::memfd_create("dma-buf", 0);  // it stands in for one, as nothing maps it
  void* const address = piece(32);
  doca_mmap* mmap = nullptr;
  ASSERT_EQ(doca_mmap_create(&mmap), DOCA_SUCCESS);
  EXPECT_EQ(doca_mmap_set_dmabuf_memrange(mmap, -1, address, 0, kPiece), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_mmap_set_dmabuf_memrange(mmap, 1 << 20, address, 0, kPiece),
            DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_mmap_set_dmabuf_memrange(mmap, file, nullptr, 0, kPiece),
            DOCA_ERROR_INVALID_VALUE);
  ASSERT_EQ(doca_mmap_set_dmabuf_memrange(mmap, file, address, 4096, kPiece), DOCA_SUCCESS);
  ASSERT_EQ(::close(file), 0);  // the mmap has its own
  EXPECT_EQ(doca_mmap_set_memrange(mmap, address, kPiece), DOCA_SUCCESS);
  EXPECT_EQ(doca_mmap_set_memrange(mmap, address, kPiece - 1), DOCA_ERROR_NOT_PERMITTED);
  ASSERT_EQ(doca_mmap_add_dev(mmap, dev_), DOCA_SUCCESS);
  ASSERT_EQ(doca_mmap_start(mmap), DOCA_SUCCESS);
  EXPECT_EQ(doca_mmap_set_dmabuf_memrange(mmap, 0, address, 0, kPiece), DOCA_ERROR_BAD_STATE);
  ASSERT_EQ(doca_ctx_start(ctx_), DOCA_SUCCESS);
  doca_buf* to = nullptr;
  ASSERT_EQ(doca_buf_inventory_buf_get_by_addr(inventory_, mmap, address, kPiece, &to),
            DOCA_SUCCESS);
  doca_dma_task_memcpy* task = nullptr;
  ASSERT_EQ(doca_dma_task_memcpy_alloc_init(dma_, source(0, 7), to, {}, &task), DOCA_SUCCESS);
  ASSERT_EQ(submit(task), DOCA_SUCCESS);
  progress_until_ended(1);
  EXPECT_EQ(ended_[0].second, DOCA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(*piece(32), 0);
  EXPECT_EQ(doca_mmap_destroy(mmap), DOCA_SUCCESS);
}

}  // namespace
}  // namespace offload::doca
