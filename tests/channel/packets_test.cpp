#include "channel/packets.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/support/bytes.hpp"

namespace offload::channel {
namespace {

using kernels::kMaxPacketPayload;
using kernels::kMaxPackets;
using kernels::kSlack;
using kernels::Packet;
using kernels::packets_for;
using support::Bytes;

constexpr std::uint32_t kTurn = 0x8765'4321;
constexpr std::byte kGuard{0xa5};

/// Packets as the former lap left them.
std::vector<Packet> former_vectors() {
  return std::vector<Packet>(kMaxPackets + 1, Packet{{1, 2, 3}, kTurn - 1});
}

/// Exactly as large as the message, so that a checker sees a read beyond it.
std::unique_ptr<std::byte[]> exactly(const Bytes& message) {
  auto memory = std::make_unique<std::byte[]>(message.size());
  std::copy(message.begin(), message.end(), memory.get());
  return memory;
}

std::vector<Packet> written(const Bytes& message) {
  auto packets = former_vectors();
  write_packets(packets.data(), kTurn, exactly(message).get(),
                static_cast<std::uint32_t>(message.size()));
  return packets;
}

Bytes message_of(std::uint32_t length) {
  return support::random_bytes(length, length);
}

// The form is the wire format of a later transport too.
TEST(Packed, Golden) {
  const auto packets = written(support::bytes({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}));
  const Packet expected[] = {
      {{13, 0, 0}, kTurn}, {{0x0403'0201, 0x0807'0605, 0x0c0b'0a09}, kTurn}, {{13, 0, 0}, kTurn}};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(std::memcmp(&packets[i], &expected[i], sizeof(Packet)), 0) << i;
  }
}

TEST(Packed, EveryLengthIsReadAsItWasWritten) {
  for (std::uint32_t length = 0; length <= kMaxPacketPayload; ++length) {
    const auto message = message_of(length);
    const auto packets = written(message);
    EXPECT_EQ(packets[0].data[0], length);
    Bytes to(length + kSlack);
    ASSERT_TRUE(read_packets(packets.data(), kTurn, to.data(), length));
    to.resize(length);
    ASSERT_EQ(to, message) << length;
  }
}

TEST(Packed, WritingTouchesOnlyItsVectors) {
  for (std::uint32_t length = 0; length <= kMaxPacketPayload; ++length) {
    const auto packets = written(message_of(length));
    for (std::uint32_t v = 0; v < packets.size(); ++v) {
      const bool own = v < packets_for(length);
      ASSERT_EQ(packets[v].flag, own ? kTurn : kTurn - 1) << v << " of " << length;
      ASSERT_TRUE(own || packets[v].data[2] == 3);
    }
  }
}

TEST(Packed, ReadingTouchesNothingBeyondItsSlack) {
  for (std::uint32_t length = 0; length <= kMaxPacketPayload; ++length) {
    const auto packets = written(message_of(length));
    Bytes memory(64 + length + kSlack + 64, kGuard);
    ASSERT_TRUE(read_packets(packets.data(), kTurn, memory.data() + 64, length));
    for (std::size_t i = 0; i < 64; ++i) {
      ASSERT_EQ(memory[i], kGuard) << length;
      ASSERT_EQ(memory[64 + length + kSlack + i], kGuard) << length;
    }
  }
}

TEST(Packed, WithOneVectorOfTheFormerTurnItIsNotThere) {
  for (std::uint32_t length = 1; length <= kMaxPacketPayload; ++length) {
    auto packets = written(message_of(length));
    Bytes to(length + kSlack);
    for (std::uint32_t v = 1; v < packets_for(length); ++v) {
      --packets[v].flag;
      ASSERT_FALSE(read_packets(packets.data(), kTurn, to.data(), length)) << v << " of " << length;
      ++packets[v].flag;
    }
    ASSERT_TRUE(read_packets(packets.data(), kTurn, to.data(), length));
  }
}

TEST(Packed, DestinationAndSourceAtAnyAlignment) {
  const auto message = message_of(100);
  for (std::size_t shift = 0; shift < 16; ++shift) {
    Bytes from(shift + 100);
    std::copy(message.begin(), message.end(), from.begin() + static_cast<std::ptrdiff_t>(shift));
    auto packets = former_vectors();
    write_packets(packets.data(), kTurn, from.data() + shift, 100);
    Bytes to(shift + 100 + kSlack);
    ASSERT_TRUE(read_packets(packets.data(), kTurn, to.data() + shift, 100));
    EXPECT_EQ(support::copy_of(std::span(to).subspan(shift, 100)), message);
  }
}

}  // namespace
}  // namespace offload::channel
