#include "gpu/cuda_stream.hpp"

#include <type_traits>

#include "tests/gpu/gpu_test.hpp"

namespace offload::gpu {
namespace {

static_assert(!std::is_copy_constructible_v<CudaStream> &&
              std::is_nothrow_move_constructible_v<CudaStream>);
static_assert(std::is_trivially_copyable_v<CudaStreamRef>);
static_assert(!std::is_constructible_v<CudaStreamRef, int> &&
              !std::is_constructible_v<CudaStreamRef, std::nullptr_t>);
static_assert(!std::is_constructible_v<CudaStream, cudaStream_t>, "from_native_handle says it");

using CudaStreamTest = test::GpuTest;

TEST_F(CudaStreamTest, OutlivesItsViews) {
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  {
    const CudaStreamRef view = stream;
    const CudaStreamRef copy = view;  // NOLINT(performance-unnecessary-copy-initialization)
    EXPECT_EQ(copy.get(), stream);
    EXPECT_EQ(copy.query(), cudaSuccess);
    EXPECT_NO_THROW(copy.sync());
  }
  EXPECT_EQ(cudaStreamQuery(stream), cudaSuccess);
  // Destroyed once, by its last owner: a second time would be logged and fail the driver.
  CudaStream owner = CudaStream::from_native_handle(stream);
  const CudaStream moved = std::move(owner);
  EXPECT_EQ(moved.get(), stream);
}

TEST_F(CudaStreamTest, AReleasedOneIsTheCallers) {
  CudaStream owner;
  cudaStream_t stream = nullptr;
  {
    CudaStream last = std::move(owner);
    stream = last.release();
  }
  EXPECT_EQ(cudaStreamQuery(stream), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

}  // namespace
}  // namespace offload::gpu
