#include "rdma/queues/queue_memory.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "softcard/card/card.hpp"
#include "tests/support/thrown.hpp"

namespace offload::rdma {
namespace {

namespace wire = kernels::rdma;

struct alignas(kQueueAlignment) Line {
  std::byte bytes[kQueueAlignment];
};

std::vector<Line> room_for(const QueueSizes& sizes) {
  return std::vector<Line>(queue_memory_bytes(sizes) / sizeof(Line));
}

std::span<std::byte> bytes_of(std::vector<Line>& lines) {
  return std::as_writable_bytes(std::span(lines));
}

void refused(const QueueSizes& sizes) {
  EXPECT_EQ(support::thrown_by([&] { static_cast<void>(queue_memory_bytes(sizes)); }).code(),
            core::ErrorCode::invalid_value);
}

TEST(QueueMemory, SizesArePowersOfTwoWithinBounds) {
  refused({12, 16});
  refused({16, 0});
  refused({1U << 16, 16});
  refused({16, 1U << 16});
  refused({16, 12});
  EXPECT_GT(queue_memory_bytes({kMostEntries, kMostEntries}), kMostEntries * 208U);
}

TEST(QueueMemory, EachQueueHasPlacesForItsCompletions) {
  auto memory = room_for({16, 8});
  const auto queues = lay_out_queues(bytes_of(memory), {16, 8}, 1);
  EXPECT_NO_THROW(check_sizes(queues));
  const auto refusal = [](const QueuePairMemory& changed) {
    return support::thrown_by([&] { check_sizes(changed); }).code();
  };
  auto changed = queues;
  changed.send.completions.log2 = 23;
  EXPECT_NO_THROW(check_sizes(changed));
  changed.send.completions.log2 = 24;  // over the bits of the consumer's record
  EXPECT_EQ(refusal(changed), core::ErrorCode::invalid_value);
  changed.send.completions.log2 = 3;
  EXPECT_EQ(refusal(changed), core::ErrorCode::invalid_value);
  changed = queues;
  changed.send.ring.blocks = 12;
  EXPECT_EQ(refusal(changed), core::ErrorCode::invalid_value);
  changed = queues;
  changed.receive.completions.log2 = 2;
  EXPECT_EQ(refusal(changed), core::ErrorCode::invalid_value);
  changed = queues;
  changed.receive.entries = 0;
  EXPECT_EQ(refusal(changed), core::ErrorCode::invalid_value);
}

TEST(QueueMemory, OfTheRightSizeAlignmentAndNumber) {
  const QueueSizes sizes{16, 8};
  auto memory = room_for(sizes);
  const auto bytes = bytes_of(memory);
  const auto refusal = [&](std::span<std::byte> given, std::uint32_t number) {
    return support::thrown_by([&] { static_cast<void>(lay_out_queues(given, sizes, number)); })
        .code();
  };
  EXPECT_EQ(refusal(bytes.first(bytes.size() - 1), 1), core::ErrorCode::invalid_value);
  EXPECT_EQ(refusal(bytes, 1U << 24), core::ErrorCode::invalid_value);
  std::vector<Line> more(memory.size() + 1);
  EXPECT_EQ(refusal(bytes_of(more).subspan(8), 1), core::ErrorCode::invalid_value);
  EXPECT_EQ(lay_out_queues(bytes, sizes, 5).send.number, 5U);
  EXPECT_EQ(lay_out_queues(bytes, sizes, 0xff'ffff).send.number, 0xff'ffffU);
}

TEST(QueueMemory, PartsDoNotOverlapAndFillIt) {
  for (const QueueSizes sizes : {QueueSizes{1, 1}, QueueSizes{16, 2}, QueueSizes{4, 128}}) {
    auto memory = room_for(sizes);
    const auto queues = lay_out_queues(bytes_of(memory), sizes, 1);
    std::set<const void*> lines;
    std::size_t taken = 0;
    const auto take = [&](const void* begin, std::size_t bytes) {
      const auto* const first = static_cast<const std::byte*>(begin);
      for (std::size_t at = 0; at < bytes; at += sizeof(Line), ++taken) lines.insert(first + at);
    };
    take(queues.send.ring.segments, sizes.send_blocks * wire::kBlockBytes);
    take(queues.send.completions.entries, sizes.send_blocks * sizeof(wire::Cqe));
    take(queues.receive.ring, sizes.receives * sizeof(wire::Segment));
    take(queues.receive.completions.entries, sizes.receives * sizeof(wire::Cqe));
    for (const void* line : {static_cast<const void*>(queues.send.record),
                             static_cast<const void*>(queues.send.doorbell),
                             static_cast<const void*>(queues.receive.record),
                             static_cast<const void*>(queues.send.completions.record),
                             static_cast<const void*>(queues.receive.completions.record)}) {
      take(line, 8);
    }
    EXPECT_EQ(lines.size(), taken);
    EXPECT_EQ(taken, memory.size());
    EXPECT_EQ(*lines.begin(), static_cast<const void*>(memory.data()));
    EXPECT_EQ(*lines.rbegin(), static_cast<const void*>(&memory.back()));
  }
}

// A reader that checks only the owner bit takes fresh completions for those of the second lap.
TEST(QueueMemory, FreshCompletionsAreNobodysOfTheFirstLap) {
  auto memory = room_for({16, 4});
  const auto queues = lay_out_queues(bytes_of(memory), {16, 4}, 1);
  for (std::uint32_t i = 0; i < 16; ++i) {
    EXPECT_EQ(wire::big_endian(queues.send.completions.entries[i].words[wire::kCqeOwner]), 0xf1U);
  }
  EXPECT_EQ(wire::big_endian(queues.receive.completions.entries[3].words[wire::kCqeOwner]), 0xf1U);
  for (const std::uint64_t index : {0U, 16U}) {
    EXPECT_FALSE(
        wire::is_there(queues.send.completions.entries[0].words[wire::kCqeOwner], index, 4));
  }
}

TEST(QueueMemory, EachPartIsSeenAtTheSameDistance) {
  const QueueSizes sizes{8, 4};
  auto memory = room_for(sizes);
  auto elsewhere = memory;
  const auto queues = lay_out_queues(bytes_of(memory), sizes, 0x40);
  const auto moved = as_seen_at(queues, memory.data(), elsewhere.data());
  const auto expect_moved = [&](const void* from, const void* to) {
    const auto* const begin = reinterpret_cast<const std::byte*>(memory.data());
    const auto* const other = reinterpret_cast<const std::byte*>(elsewhere.data());
    EXPECT_EQ(static_cast<const std::byte*>(to) - other,
              static_cast<const std::byte*>(from) - begin);
  };
  const auto expect_completions_moved = [&](const wire::CompletionQueue& from,
                                            const wire::CompletionQueue& to) {
    expect_moved(from.entries, to.entries);
    expect_moved(from.record, to.record);
    EXPECT_EQ(from.log2, to.log2);
  };
  expect_moved(queues.send.ring.segments, moved.send.ring.segments);
  expect_moved(queues.send.record, moved.send.record);
  expect_moved(queues.send.doorbell, moved.send.doorbell);
  expect_completions_moved(queues.send.completions, moved.send.completions);
  expect_moved(queues.receive.ring, moved.receive.ring);
  expect_moved(queues.receive.record, moved.receive.record);
  expect_completions_moved(queues.receive.completions, moved.receive.completions);
  EXPECT_EQ(moved.send.ring.blocks, sizes.send_blocks);
  EXPECT_EQ(moved.send.number, 0x40U);
  EXPECT_EQ(moved.receive.entries, sizes.receives);
}

// The queues lie in memory that was used before; their owner sees it elsewhere, a card at the
// begin.
TEST(QueueMemory, HandlesOfTheSameMemoryElsewhere) {
  const QueueSizes sizes{8, 8};
  auto memory = room_for(sizes);
  for (auto& byte : bytes_of(memory)) byte = std::byte{0xff};
  const auto queues = lay_out_queues(bytes_of(memory), sizes, 0x40);
  auto elsewhere = memory;
  const auto moved = as_seen_at(queues, memory.data(), elsewhere.data());
  wire::SendState state;
  wire::Completion completion{};
  EXPECT_FALSE(wire::poll_send(moved.send, state, completion));
  wire::ReceiveState received;
  EXPECT_FALSE(wire::poll_receive(moved.receive, received, completion));

  wire::SendWork work;
  work.flags = wire::kSignaled;
  ASSERT_EQ(wire::post_send(moved.send, state, work), wire::Posted::done);
  wire::publish(moved.send, state);
  model::Card card;
  EXPECT_EQ(card.add(queues), 0x40U);
  EXPECT_FALSE(card.progress()) << "nothing was posted there";
  memory = elsewhere;  // the same storage, as it was seen elsewhere
  EXPECT_TRUE(card.progress());
  EXPECT_EQ(card.fault(), "");
  EXPECT_TRUE(wire::poll_send(queues.send, state, completion));
}

}  // namespace
}  // namespace offload::rdma
