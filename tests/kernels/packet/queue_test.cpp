#include "kernels/packet/queue.hpp"

#include <gtest/gtest.h>

#include <atomic>

#include "kernels/group.hpp"
#include "tests/kernels/bodies/host_warp.hpp"
#include "tests/kernels/packet/wire.hpp"

/// Queues beside a thread that is the driver; also under ThreadSanitizer.
namespace offload::kernels::packet::test {
namespace {

constexpr WaitLimit kLong{20'000'000'000};

Bytes packet_of(std::uint32_t number) {
  Bytes packet(60 + number % 7, static_cast<std::uint8_t>(number));
  std::memcpy(packet.data(), &number, sizeof number);
  return packet;
}

std::uint32_t number_of(const Bytes& packet) {
  std::uint32_t number = 0;
  std::memcpy(&number, packet.data(), sizeof number);
  return number;
}

/// Adds one to each byte behind the number of a packet whose number is even, and sends it; frees
/// the others.
struct AnswerEven {
  Queue queue;
  std::uint32_t count;
  std::uint32_t most;
  std::atomic<std::uint32_t>* failed;

  template <class Group>
  void operator()(const Group& group) const {
    std::uint32_t received = 0;
    while (received != count) {
      const Batch batch = receive(group, queue, received, most, kLong);
      const Result result = finish(group, queue, queue, received, batch, kLong, [](Packet& packet) {
        for (std::uint32_t i = 4; i < packet.length; ++i) ++packet.data[i];
        return packet.data[0] % 2 == 0 ? Verdict::send : Verdict::drop;
      });
      if (batch.count == 0 || batch.count > most || result != Result::done) ++*failed;
      if (batch.count == 0) return;
      recycle(group, queue.frames, queue.completions, kLong);
    }
  }
};

/// Has `count` packets of a wire answered by a runner, and looks at every byte.
template <class Run>
void answer_even(std::uint32_t count, std::uint32_t most, const Run& run) {
  Wire wire(64);
  for (std::uint32_t i = 0; i < count; ++i) wire.add(packet_of(i));
  std::atomic<std::uint32_t> failed{0};
  wire.start();
  run(AnswerEven{wire.queue(), count, most, &failed});
  wire.stop();
  EXPECT_EQ(failed, 0U);
  while (recycle(SingleLane{}, wire.queue().frames, wire.queue().completions, kLong) != 0) continue;
  EXPECT_EQ(wire.frames_at_home(), 128U);
  ASSERT_EQ(wire.sent().size(), (count + 1) / 2);
  for (std::uint32_t i = 0; i < wire.sent().size(); ++i) {
    Bytes expected = packet_of(2 * i);
    for (std::size_t k = 4; k < expected.size(); ++k) ++expected[k];
    ASSERT_EQ(wire.sent()[i], expected) << i;
  }
}

TEST(PacketQueue, IsServedByAThread) {
  answer_even(5000, 16, [](const AnswerEven& body) { body(SingleLane{}); });
}

template <std::uint32_t lanes>
void run_lanes(const AnswerEven& body) {
  kernels::test::HostLanes shared(lanes);
  std::vector<std::jthread> threads;
  for (std::uint32_t lane = 0; lane < lanes; ++lane) {
    threads.emplace_back([&, lane] { body(kernels::test::HostWarp(shared, lane)); });
  }
}

TEST(PacketQueue, IsServedByAWarp) {
  answer_even(300, 32, run_lanes<32>);
}
TEST(PacketQueue, IsServedByABlock) {
  answer_even(150, 48, run_lanes<64>);
}

TEST(PacketQueue, SaysWhenNothingComes) {
  const Wire wire(8);
  EXPECT_EQ(receive(SingleLane{}, wire.queue(), 0, 8, {1000}).count, 0U);
  const std::uint32_t stop = 1;
  EXPECT_EQ(receive(SingleLane{}, wire.queue(), 0, 8, {~0ULL >> 1, &stop}).count, 0U);
}

TEST(PacketQueue, DropsWhatPointsOutOfTheFrames) {
  Wire wire(8);
  const Queue& queue = wire.queue();
  for (const Descriptor wrong :
       {Descriptor{16 * Wire::kFrameBytes, 60, 0}, Descriptor{~0ULL, 60, 0},
        Descriptor{256, Wire::kFrameBytes - 255, 0}, Descriptor{256, ~0U, 0}}) {
    queue.receive.entries[0] = wrong;
    EXPECT_EQ(packet_at(queue, {0, 1}, 0).data, nullptr);
  }
  queue.receive.entries[0] = {256, Wire::kFrameBytes - 256, 0};
  EXPECT_NE(packet_at(queue, {0, 1}, 0).data, nullptr);
}

TEST(PacketQueue, SendsUntilFramesAreShort) {
  Wire wire(8);
  const Queue& queue = wire.queue();
  const auto send_one = [&] {
    return send_new(SingleLane{}, queue, 1, {1'000'000}, [](std::uint8_t* bytes, std::uint32_t) {
      bytes[0] = 1;
      return 60U;
    });
  };
  for (int i = 0; i < 8; ++i) EXPECT_EQ(send_one(), 1U);
  EXPECT_EQ(send_one(), 0U);
  wire.start();
  EXPECT_EQ(
      send_new(SingleLane{}, queue, 1, kLong, [](std::uint8_t*, std::uint32_t) { return 60U; }),
      1U);
}

/// Threads that send, each its packets, at positions that say the order: 0, 1, 2... no matter who
/// is first.
TEST(PacketQueue, SendsInOrderByManyThreads) {
  constexpr std::uint32_t kThreads = 4;
  constexpr std::uint32_t kEach = 500;
  Wire wire(4096);  // a frame for each packet, so that nothing is recycled
  const Queue& queue = wire.queue();
  wire.start();
  std::vector<std::jthread> threads;
  std::atomic<std::uint32_t> failed{0};
  for (std::uint32_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (std::uint32_t i = 0; i < kEach; ++i) {
        const std::uint64_t position = reserve(SingleLane{}, *queue.send_order, 1);
        const std::uint64_t frame = (4096 + thread * kEach + i) * std::uint64_t{Wire::kFrameBytes};
        const Bytes packet = packet_of(static_cast<std::uint32_t>(position));
        std::memcpy(queue.frames.bytes + frame, packet.data(), packet.size());
        const Descriptor descriptor{frame, static_cast<std::uint32_t>(packet.size()), 0};
        // Now and then one gives its position up.
        const auto result = send_at(SingleLane{}, queue, position, true,
                                    position % 10 == 9 ? nothing_to_send() : descriptor, kLong);
        if (result != Result::done) ++failed;
      }
    });
  }
  threads.clear();
  wire.stop();
  EXPECT_EQ(failed, 0U);
  ASSERT_EQ(wire.sent().size(), kThreads * kEach * 9 / 10);
  std::uint32_t expected = 0;
  for (const Bytes& packet : wire.sent()) {
    ASSERT_EQ(number_of(packet), expected);
    ASSERT_EQ(packet, packet_of(expected));
    expected += expected % 10 == 8 ? 2 : 1;
  }
}

TEST(PacketQueue, SaysThatAnotherDoesNotSend) {
  Wire wire(8);
  const Queue& queue = wire.queue();
  reserve(SingleLane{}, *queue.send_order, 1);  // and never published
  EXPECT_EQ(send(SingleLane{}, queue, true, {0, 60, 0}, {1'000'000}), Result::timed_out);
}

/// Several recycle and give back at a time, as groups do that share a hardware queue.
TEST(PacketQueue, FramesComeHomeByManyThreads) {
  Wire wire(256);
  const Queue& queue = wire.queue();
  wire.start();
  std::vector<std::jthread> threads;
  std::atomic<std::uint32_t> sent{0};
  constexpr std::uint32_t kPackets = 3000;
  threads.emplace_back([&] {
    while (sent < kPackets) {
      sent +=
          send_new(SingleLane{}, queue, 1, kLong, [](std::uint8_t*, std::uint32_t) { return 60U; });
    }
  });
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      while (sent < kPackets) {
        if (recycle(SingleLane{}, queue.frames, queue.completions, kLong) == 0) {
          std::this_thread::yield();
        }
      }
    });
  }
  threads.clear();
  wire.stop();
  while (recycle(SingleLane{}, queue.frames, queue.completions, kLong) != 0) continue;
  EXPECT_EQ(wire.frames_at_home(), 512U);
  EXPECT_EQ(wire.sent().size(), kPackets);
}

}  // namespace
}  // namespace offload::kernels::packet::test
