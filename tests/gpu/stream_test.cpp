#include "gpu/stream.hpp"

#include <type_traits>

#include "tests/gpu/gpu_test.hpp"

namespace offload::gpu {
namespace {

static_assert(!std::is_copy_constructible_v<Stream> &&
              std::is_nothrow_move_constructible_v<Stream>);
static_assert(std::is_trivially_copyable_v<StreamRef>);
static_assert(!std::is_constructible_v<StreamRef, int> &&
              !std::is_constructible_v<StreamRef, std::nullptr_t>);
static_assert(!std::is_constructible_v<Stream, cudaStream_t>, "from_native_handle says it");

using StreamTest = test::GpuTest;

TEST_F(StreamTest, OutlivesItsViews) {
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  {
    const StreamRef view = stream;
    const StreamRef copy = view;  // NOLINT(performance-unnecessary-copy-initialization)
    EXPECT_EQ(copy.get(), stream);
    EXPECT_EQ(copy.query(), cudaSuccess);
    EXPECT_NO_THROW(copy.sync());
  }
  EXPECT_EQ(cudaStreamQuery(stream), cudaSuccess);
  // Destroyed once, by its last owner: a second time would be logged and fail the driver.
  Stream owner = Stream::from_native_handle(stream);
  const Stream moved = std::move(owner);
  EXPECT_EQ(moved.get(), stream);
}

TEST_F(StreamTest, AReleasedOneIsTheCallers) {
  Stream owner;
  cudaStream_t stream = nullptr;
  {
    Stream last = std::move(owner);
    stream = last.release();
  }
  EXPECT_EQ(cudaStreamQuery(stream), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

}  // namespace
}  // namespace offload::gpu
