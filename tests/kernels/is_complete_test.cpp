#include <gtest/gtest.h>

#include "kernels/serve.hpp"
#include "tests/kernels/bodies/host_runner.hpp"
#include "tests/kernels/test_channel.hpp"

namespace offload::kernels::test {
namespace {

constexpr std::uint32_t kSlots = 4;
constexpr std::uint32_t kMaxLength = 600;

TEST(IsComplete, NeedsEveryPacket) {
  for (const std::uint32_t length : {0U, 12U, 100U, 372U}) {
    const TestChannel<HostRunner> empty(kSlots, kMaxLength);
    TestChannel<HostRunner> channel(kSlots, kMaxLength);
    const auto flag = channel.layout().flag_of(1);
    EXPECT_FALSE(is_complete(empty.channel().request(1), flag));
    channel.post(1, random_octets(length));
    const Slot slot = channel.channel().request(1);
    EXPECT_TRUE(is_complete(slot, flag));
    EXPECT_FALSE(is_complete(slot, flag + 1));
    for (std::uint32_t index = 0; index < packets_for(length); ++index) {
      const Packet whole = load_packet(slot.packets + index);
      Packet torn = whole;
      ++torn.flag;
      store_packet(slot.packets + index, torn);
      EXPECT_FALSE(is_complete(slot, flag)) << index << " of " << length;
      store_packet(slot.packets + index, whole);
    }
  }
}

TEST(IsComplete, ALongMessageIsThereWithItsHeader) {
  TestChannel<HostRunner> channel(kSlots, kMaxLength);
  const auto flag = channel.layout().flag_of(1);
  const Slot slot = channel.channel().request(1);
  for (const std::uint32_t length : {373U, kMaxLength, kMaxLength + 1, 0xffff'ffffU}) {
    channel.post_header(1, length);
    EXPECT_TRUE(is_complete(slot, flag));
    EXPECT_FALSE(is_complete(slot, flag - 1));
  }
}

}  // namespace
}  // namespace offload::kernels::test
