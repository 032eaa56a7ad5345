#include "gpu/cuda_memory.hpp"

#include <gtest/gtest.h>

#include <type_traits>

#include "device/gpus.hpp"

namespace offload::gpu {
namespace {

static_assert(!std::is_copy_constructible_v<Stream> &&
              std::is_nothrow_move_constructible_v<Stream>);
static_assert(!std::is_copy_constructible_v<Event> && std::is_nothrow_move_constructible_v<Event>);
static_assert(!std::is_copy_constructible_v<DeviceArray<int>>);

/// Handles that others made.
class ForeignHandles : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto gpus = device::list_gpus(); gpus.devices.empty()) {
      GTEST_SKIP() << "no GPU: " << gpus.why_none;
    }
  }
};

TEST_F(ForeignHandles, ABorrowedStreamOutlivesItsBorrower) {
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  {
    Stream borrowed = Stream::borrow(stream);
    EXPECT_EQ(borrowed.get(), stream);
    const Stream moved = std::move(borrowed);
    EXPECT_EQ(moved.get(), stream);
  }
  EXPECT_EQ(cudaStreamQuery(stream), cudaSuccess);
  // Destroyed once, by whoever adopted it last: a second time would be logged and fail the driver.
  Stream adopted = Stream::adopt(stream);
  const Stream moved = std::move(adopted);
  EXPECT_EQ(moved.get(), stream);
}

TEST_F(ForeignHandles, ABorrowedEventOutlivesItsBorrower) {
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  { EXPECT_EQ(Event::borrow(event).get(), event); }
  EXPECT_EQ(cudaEventQuery(event), cudaSuccess);
  EXPECT_EQ(Event::adopt(event).get(), event);
}

TEST_F(ForeignHandles, BorrowedMemoryOutlivesItsBorrower) {
  void* data = nullptr;
  ASSERT_EQ(cudaMalloc(&data, sizeof(int)), cudaSuccess);
  { EXPECT_EQ(DeviceArray<int>::borrow(static_cast<int*>(data)).get(), data); }
  ASSERT_EQ(cudaMemset(data, 1, sizeof(int)), cudaSuccess);
  { EXPECT_EQ(DeviceArray<int>::adopt(static_cast<int*>(data)).get(), data); }
  cudaPointerAttributes attributes{};
  const auto known = cudaPointerGetAttributes(&attributes, data);
  EXPECT_TRUE(known != cudaSuccess || attributes.type == cudaMemoryTypeUnregistered)
      << "it was not freed";
  cudaGetLastError();
}

}  // namespace
}  // namespace offload::gpu
