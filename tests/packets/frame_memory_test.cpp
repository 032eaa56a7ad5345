#include "packets/frame_memory.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>

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

/// Exits with 7 if the largest number of frames, 2 GiB, does not fit into the address space.
[[noreturn]] void make_most_frames_without_addresses() {
  const rlimit few{64U << 20, 128U << 20};
  ::setrlimit(RLIMIT_AS, &few);
  const auto error = thrown_by([] { FrameMemory({.homes = 1, .frames_per_home = 1U << 20}); });
  std::_Exit(error.system_errno() == ENOMEM ? 7 : 1);
}

TEST(FrameMemoryTest, ThatDoesNotFitIsAnError) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer has an address space of its own";
#endif
  EXPECT_EXIT(make_most_frames_without_addresses(), testing::ExitedWithCode(7), "");
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
