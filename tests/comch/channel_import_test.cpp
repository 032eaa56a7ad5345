#include <gtest/gtest.h>
#include <sys/mman.h>

#include <utility>

#include "comch/channel.hpp"
#include "core/error.hpp"
#include "tests/comch/channel_fixture.hpp"
#include "tests/support/thrown.hpp"

namespace offload::comch {
namespace {

using core::ErrorCode;
using support::thrown_by;

constexpr std::uint32_t kDepth = 4;
constexpr std::uint32_t kLength = 600;

class Import : public testing::Test {
 protected:
  ErrorCode refused(const protocol::ChannelDescriptor& descriptor) {
    return thrown_by([&] { ChannelImport(descriptor, test::passed_fds(channel_)); }).code();
  }

  Channel channel_{7, kDepth, kLength, -1};
  protocol::ChannelDescriptor good_ = channel_.descriptor();
};

TEST_F(Import, SeesTheSameMemory) {
  const ChannelImport import(good_, test::passed_fds(channel_));
  EXPECT_EQ(import.index(), 7U);
  EXPECT_EQ(import.channel().layout.depth, kDepth);
  EXPECT_EQ(import.channel().layout.max_length, kLength);
  EXPECT_EQ(import.channel().layout.bytes, good_.region_bytes);
  SendTask* const task = channel_.producer().allocate();
  channel_.producer().submit(*task, support::bytes_of("hello"));
  const auto header = kernels::load_vector(import.channel().request(0).vectors);
  EXPECT_EQ(header.turn, 1U);
  EXPECT_EQ(header.data[0], 5U);
}

TEST_F(Import, RefusesImpossibleShapes) {
  for (const std::uint32_t depth : {0U, 3U, kernels::kMaxDepth * 2, 0xffff'ffffU}) {
    auto descriptor = good_;
    descriptor.depth = depth;
    EXPECT_EQ(refused(descriptor), ErrorCode::bad_message) << depth;
  }
  for (const std::uint32_t length : {kernels::kMaxMessageLength + 1, 0xffff'ffffU}) {
    auto descriptor = good_;
    descriptor.max_message_length = length;
    EXPECT_EQ(refused(descriptor), ErrorCode::bad_message) << length;
  }
}

// A worker of another build that lays it out differently would corrupt it.
TEST_F(Import, RefusesAShapeThatDoesNotGiveItsSize) {
  auto shallower = good_;
  shallower.depth = kDepth / 2;
  EXPECT_EQ(refused(shallower), ErrorCode::bad_message);
  auto shorter = good_;
  shorter.max_message_length = 48;
  EXPECT_EQ(refused(shorter), ErrorCode::bad_message);
  auto smaller = good_;
  smaller.region_bytes -= 4096;
  EXPECT_EQ(refused(smaller), ErrorCode::bad_message);
}

TEST_F(Import, RefusesMemoryThatIsSmallerThanItSays) {
  auto deeper = good_;
  deeper.depth = 64;
  deeper.region_bytes = kernels::make_layout(64, kLength).bytes;
  EXPECT_EQ(refused(deeper), ErrorCode::invalid_value);
  auto absurd = good_;
  absurd.region_bytes = ~std::uint64_t{0};
  EXPECT_EQ(refused(absurd), ErrorCode::invalid_value);
  auto none = good_;
  none.region_bytes = 0;
  EXPECT_EQ(refused(none), ErrorCode::invalid_value);
}

TEST_F(Import, RefusesMemoryThatCouldShrinkUnderIt) {
  auto fds = test::passed_fds(channel_);
  fds[0] = core::Fd(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(fds[0].get(), static_cast<off_t>(good_.region_bytes)), 0);
  const auto error = thrown_by([&] { ChannelImport(good_, std::move(fds)); });
  EXPECT_EQ(error.code(), ErrorCode::invalid_value);
}

TEST_F(Import, RefusesWhatIsNoMemory) {
  auto fds = test::passed_fds(channel_);
  std::swap(fds[0], fds[1]);
  EXPECT_THROW(ChannelImport(good_, std::move(fds)), core::Error);
}

}  // namespace
}  // namespace offload::comch
