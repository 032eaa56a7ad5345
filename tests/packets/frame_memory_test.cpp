#include "packets/frame_memory.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/thrown.hpp"

namespace offload::packets {
namespace {

using core::ErrorCode;
using support::thrown_by;

TEST(FrameMemoryTest, HasZeroedFramesOfEachHome) {
  for (const std::uint32_t bytes : {2048U, 4096U}) {
    const FrameMemory memory({.homes = 3, .frames_per_home = 4, .frame_bytes = bytes});
    EXPECT_EQ(memory.frames(), 12U);
    EXPECT_EQ(memory.bytes().size(), 12 * bytes);
    EXPECT_TRUE(std::ranges::all_of(memory.bytes(), [](std::byte b) { return b == std::byte{0}; }));
  }
}

TEST(FrameMemoryTest, EachHomeIsTakenOnce) {
  FrameMemory memory({.homes = 3, .frames_per_home = 1});
  for (std::uint32_t home = 0; home < 3; ++home) EXPECT_EQ(memory.take_home(), home);
  EXPECT_EQ(thrown_by([&] { memory.take_home(); }).code(), ErrorCode::full);
}

TEST(FrameMemoryTest, KnowsTheSocketThatTheKernelKnowsItBy) {
  FrameMemory memory({.homes = 1, .frames_per_home = 1});
  EXPECT_EQ(memory.socket(), -1);
  memory.set_socket(7);
  EXPECT_EQ(memory.socket(), 7);
}

TEST(FrameMemoryTest, OfInvalidSizesIsRefused) {
  for (const FrameSizes& sizes :
       {FrameSizes{0, 64, 2048}, FrameSizes{257, 1, 2048}, FrameSizes{2, 0, 2048},
        FrameSizes{2, 63, 2048}, FrameSizes{2, 64, 1024}, FrameSizes{2, 64, 2047},
        FrameSizes{2, 64, 8192}, FrameSizes{1, 1U << 21, 2048}, FrameSizes{256, 8192, 2048},
        FrameSizes{2, 1U << 20, 2048}, FrameSizes{2, 1U << 31, 2048}}) {
    EXPECT_EQ(thrown_by([&] { const FrameMemory memory(sizes); }).code(), ErrorCode::invalid_value)
        << sizes.homes << ", " << sizes.frames_per_home << ", " << sizes.frame_bytes;
  }
  EXPECT_EQ(FrameMemory({.homes = 256, .frames_per_home = 1}).frames(), 256U);
}

}  // namespace
}  // namespace offload::packets
