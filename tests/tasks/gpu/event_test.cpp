#include "tasks/gpu/event.hpp"

#include <type_traits>

#include "tests/gpu/gpu_test.hpp"

namespace offload::gpu {
namespace {

static_assert(!std::is_copy_constructible_v<Event> && std::is_nothrow_move_constructible_v<Event>);
static_assert(std::is_trivially_copyable_v<EventRef>);
static_assert(!std::is_constructible_v<EventRef, int> &&
              !std::is_constructible_v<EventRef, std::nullptr_t>);

using EventTest = test::GpuTest;

TEST_F(EventTest, OutlivesItsViews) {
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  { EXPECT_EQ(EventRef(event).get(), event); }
  EXPECT_EQ(cudaEventQuery(event), cudaSuccess);
  EXPECT_EQ(Event::from_native_handle(event).get(), event);
}

TEST_F(EventTest, IsDoneWhenTheWorkBeforeItIs) {
  const CudaStream stream;
  Event owner;
  const EventRef event = owner;
  ASSERT_EQ(event.record(stream), cudaSuccess);
  stream.sync();
  EXPECT_EQ(event.query(), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(owner.release()), cudaSuccess);
}

}  // namespace
}  // namespace offload::gpu
