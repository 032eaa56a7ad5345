#include "kernels/channel_layout.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <ostream>
#include <vector>

namespace offload::kernels {
namespace {

struct Shape {
  std::uint32_t depth;
  std::uint32_t max_length;
};

std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  return out << "depth " << shape.depth << ", messages of " << shape.max_length;
}

/// All depths with all lengths at which something changes.
std::vector<Shape> shapes() {
  std::vector<Shape> all;
  for (std::uint32_t depth = 1; depth <= kMaxDepth; depth *= 2) {
    for (const std::uint32_t length : {0U, 1U, 47U, 48U, 49U, 84U, 85U, 256U, 371U, 372U, 373U,
                                       496U, 497U, 4096U, 65536U, kMaxMessageLength}) {
      all.push_back({depth, length});
    }
  }
  return all;
}

TEST(Layout, EverySlotHasRoomForItsMessages) {
  for (const Shape& shape : shapes()) {
    SCOPED_TRACE(testing::Message() << shape);
    const auto layout = make_layout(shape.depth, shape.max_length);
    EXPECT_EQ(layout.depth, shape.depth);
    EXPECT_EQ(1U << layout.depth_log2, shape.depth);
    EXPECT_GE(layout.max_length, shape.max_length);
    EXPECT_GE(layout.max_content, layout.max_length);
    EXPECT_GE(layout.max_content, kMaxBatchContent);
    EXPECT_GE(layout.slot_stride, kMaxPackets * sizeof(Packet) + layout.max_content + kSlack);
  }
}

TEST(Layout, NothingOverlaps) {
  for (const Shape& shape : shapes()) {
    SCOPED_TRACE(testing::Message() << shape);
    const auto layout = make_layout(shape.depth, shape.max_length);
    EXPECT_GE(layout.request_bytes, sizeof(RequestHeader) + layout.depth * layout.slot_stride);
    EXPECT_GE(layout.response_bytes, sizeof(ResponseHeader) + layout.depth * layout.slot_stride);
    EXPECT_EQ(layout.bytes(), layout.request_bytes + layout.response_bytes);
  }
}

TEST(Layout, EverythingIsAligned) {
  for (const Shape& shape : shapes()) {
    SCOPED_TRACE(testing::Message() << shape);
    const auto layout = make_layout(shape.depth, shape.max_length);
    EXPECT_EQ(layout.slot_stride % kSlotAlignment, 0U);
    EXPECT_EQ(layout.request_bytes % 4096, 0U);
    EXPECT_EQ(layout.response_bytes % 4096, 0U);
  }
}

// Whatever a service answers, a few packets of it always fit.
TEST(Layout, ShortLimitsAreRaisedToFourPackets) {
  for (const std::uint32_t length : {0U, 1U, 47U, 48U}) {
    EXPECT_EQ(make_layout(4, length).max_length, 48U);
  }
  EXPECT_EQ(make_layout(4, 49).max_length, 49U);
}

TEST(Layout, ResponsesMayBeLongerThanRequests) {
  const auto layout = make_layout(4, 256, 9000);
  EXPECT_EQ(layout.max_request, 256U);
  EXPECT_EQ(layout.max_response, 9000U);
  EXPECT_EQ(layout.max_length, 9000U);
  EXPECT_EQ(layout.max_content, 9000U);
  EXPECT_EQ(make_layout(4, 256, 0).max_response, 48U);
  EXPECT_EQ(make_layout(4, 256, 48).max_response, 48U);
  EXPECT_EQ(make_layout(4, 256, 49).max_response, 49U);
  EXPECT_EQ(make_layout(4, 256, 256).max_length, 256U);
  EXPECT_TRUE(is_valid_shape(4, 256, kMaxMessageLength));
  EXPECT_FALSE(is_valid_shape(4, 256, kMaxMessageLength + 1));
}

// Server and worker may be of different builds: where things are must never change.
TEST(Layout, Golden) {
  const auto small = make_layout(128, 256);
  EXPECT_EQ(small.max_content, 5120U);
  EXPECT_EQ(small.slot_stride, 512U + 5120 + 128);
  EXPECT_EQ(small.request_bytes, 741'376U);   // 128 + 128 * 5760, in pages
  EXPECT_EQ(small.response_bytes, 741'376U);  // 256 + 128 * 5760
  const auto large = make_layout(16, 65536);
  EXPECT_EQ(large.max_content, 65536U);
  EXPECT_EQ(large.slot_stride, 512U + 65536 + 128);
  EXPECT_EQ(large.request_bytes, 1'060'864U);  // 128 + 16 * 66176
  EXPECT_EQ(large.response_bytes, 1'060'864U);
  EXPECT_EQ(offsetof(RequestHeader, consumed), 0U);
  EXPECT_EQ(offsetof(ResponseHeader, requests), 0U);
  EXPECT_EQ(offsetof(ResponseHeader, responses), 128U);
  EXPECT_EQ(offsetof(Packet, flag), 12U);
}

TEST(Layout, ValidShapes) {
  for (const Shape& shape : shapes()) {
    EXPECT_TRUE(is_valid_shape(shape.depth, shape.max_length)) << shape;
  }
  for (const std::uint32_t depth : {0U, 3U, 5U, 127U, 4095U, 4097U, 8192U, 0x8000'0000U, ~0U}) {
    EXPECT_FALSE(is_valid_shape(depth, 64)) << depth;
  }
  for (const std::uint32_t length : {kMaxMessageLength + 1, 0x8000'0000U, ~0U}) {
    EXPECT_FALSE(is_valid_shape(8, length)) << length;
  }
}

TEST(Packets, TwelveBytesEachAndAHeader) {
  EXPECT_EQ(packets_for(0), 1U);
  EXPECT_EQ(packets_for(1), 2U);
  EXPECT_EQ(packets_for(12), 2U);
  EXPECT_EQ(packets_for(13), 3U);
  EXPECT_EQ(packets_for(kMaxPacketPayload), kMaxPackets);
  EXPECT_EQ(kMaxPacketPayload, 372U);
}

TEST(Flags, AreOddAndChangeEachLap) {
  for (const std::uint32_t depth : {1U, 2U, 128U, kMaxDepth}) {
    const auto layout = make_layout(depth, 64);
    for (const std::uint32_t lap : {0U, 1U, 77U, 0x7fff'ffffU}) {
      for (std::uint32_t slot = 0; slot < depth; ++slot) {
        const std::uint64_t sequence = std::uint64_t{lap} * depth + slot;
        ASSERT_EQ(layout.slot_index(sequence), slot);
        ASSERT_EQ(layout.flag_of(sequence), 2 * lap + 1);
      }
    }
  }
}

TEST(Flags, NoneIsThatOfFreshMemoryOrOfTheLapBefore) {
  const auto layout = make_layout(8, 64);
  for (const std::uint64_t wrap :
       {std::uint64_t{0}, std::uint64_t{1} << 31, std::uint64_t{1} << 32, std::uint64_t{1} << 33}) {
    for (std::uint64_t lap = wrap < 4 ? 0 : wrap - 4; lap != wrap + 4; ++lap) {
      EXPECT_NE(layout.flag_of(lap * 8), 0U) << lap;
      EXPECT_NE(layout.flag_of(lap * 8), layout.flag_of((lap + 1) * 8)) << lap;
    }
  }
}

// Between two laps with one flag there are eight in which the whole slot is written.
TEST(Flags, AreOlderNowhereThanASlotsRewriting) {
  const auto layout = make_layout(4, 64);
  std::uint32_t rewritten = 0;
  for (std::uint64_t part = 0; part < 8; ++part) {
    const std::uint64_t first = 77 + part * kRewriteLaps;
    for (const std::uint64_t lap :
         {first, first + 1, (part + 1) * kRewriteLaps - 2, (part + 1) * kRewriteLaps - 1}) {
      if (rewrites_slot(layout.flag_of(lap * 4))) ++rewritten;
    }
  }
  EXPECT_EQ(rewritten, 8U);
  EXPECT_EQ(layout.flag_of(77 * 4), layout.flag_of((77 + 8 * std::uint64_t{kRewriteLaps}) * 4));
}

TEST(Packets, APlainPayloadFillsTheHeaderAlone) {
  EXPECT_EQ(packets_filled(0), 1U);
  EXPECT_EQ(packets_filled(13), 3U);
  EXPECT_EQ(packets_filled(kMaxPacketPayload), kMaxPackets);
  EXPECT_EQ(packets_filled(kMaxPacketPayload + 1), 1U);
  EXPECT_EQ(packets_filled(kMaxMessageLength), 1U);
}

std::uint64_t room_of(const ChannelLayout& layout) {
  return kMaxPackets * sizeof(Packet) + layout.max_content + kSlack;
}

// Slots are picked by masking: no sequence leads out of the memory.
TEST(ChannelView, EverySequenceLeadsIntoTheMemory) {
  for (const Shape shape : {Shape{1, 0}, Shape{8, 100}, Shape{4, 1000}}) {
    const auto layout = make_layout(shape.depth, shape.max_length);
    std::vector<Packet> requests(layout.request_bytes / sizeof(Packet));
    std::vector<Packet> responses(layout.response_bytes / sizeof(Packet));
    const ChannelView channel{reinterpret_cast<std::uint8_t*>(requests.data()),
                              reinterpret_cast<std::uint8_t*>(responses.data()), layout};
    const auto expect_within = [&](const Slot& slot, std::uint64_t header,
                                   const std::vector<Packet>& memory) {
      const auto* const base = reinterpret_cast<const std::uint8_t*>(memory.data());
      const auto* const packets = reinterpret_cast<const std::uint8_t*>(slot.packets);
      ASSERT_GE(packets, base + header);
      ASSERT_LE(packets + room_of(layout), base + memory.size() * sizeof(Packet));
      ASSERT_EQ(slot.plain(), packets + kMaxPackets * sizeof(Packet));
    };
    for (const std::uint64_t start :
         {std::uint64_t{0}, std::uint64_t{1} << 32, ~std::uint64_t{99}}) {
      for (std::uint64_t i = 0; i < 100; ++i) {
        expect_within(channel.request(start + i), sizeof(RequestHeader), requests);
        expect_within(channel.response(start + i), sizeof(ResponseHeader), responses);
      }
    }
  }
}

TEST(ChannelView, PartsOfDifferentSlotsAreDisjoint) {
  const auto layout = make_layout(4, 1000);
  std::vector<Packet> memory(layout.bytes() / sizeof(Packet));
  auto* const base = reinterpret_cast<std::uint8_t*>(memory.data());
  const ChannelView channel{base, base + layout.request_bytes, layout};
  std::vector<std::uint8_t*> starts;
  for (std::uint64_t slot = 0; slot < 4; ++slot) {
    starts.push_back(reinterpret_cast<std::uint8_t*>(channel.request(slot).packets));
    starts.push_back(reinterpret_cast<std::uint8_t*>(channel.response(slot).packets));
  }
  for (const auto* a : starts) {
    for (const auto* b : starts) {
      if (a < b) {
        EXPECT_GE(static_cast<std::uint64_t>(b - a), layout.slot_stride);
      }
    }
  }
}

}  // namespace
}  // namespace offload::kernels
