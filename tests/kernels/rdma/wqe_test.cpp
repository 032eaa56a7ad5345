#include "kernels/rdma/wqe.hpp"

#include <gtest/gtest.h>
#include <infiniband/mlx5dv.h>

#include <array>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/rdma/queue_pair.hpp"

/// Checks that entries are those that infiniband/mlx5dv.h describes, byte for byte.
namespace offload::kernels::rdma {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr Opcode kAll[] = {Opcode::nop,          Opcode::rdma_write,    Opcode::rdma_write_with_imm,
                           Opcode::send,         Opcode::send_with_imm, Opcode::rdma_read,
                           Opcode::compare_swap, Opcode::fetch_add};

TEST(Wqe, NumbersAreThoseOfMlx5) {
  EXPECT_EQ(kBlockBytes, static_cast<std::uint32_t>(MLX5_SEND_WQE_BB));
  const std::pair<Opcode, int> opcodes[] = {
      {Opcode::nop, MLX5_OPCODE_NOP},
      {Opcode::rdma_write, MLX5_OPCODE_RDMA_WRITE},
      {Opcode::rdma_write_with_imm, MLX5_OPCODE_RDMA_WRITE_IMM},
      {Opcode::send, MLX5_OPCODE_SEND},
      {Opcode::send_with_imm, MLX5_OPCODE_SEND_IMM},
      {Opcode::rdma_read, MLX5_OPCODE_RDMA_READ},
      {Opcode::compare_swap, MLX5_OPCODE_ATOMIC_CS},
      {Opcode::fetch_add, MLX5_OPCODE_ATOMIC_FA}};
  for (const auto& [ours, theirs] : opcodes) EXPECT_EQ(static_cast<int>(ours), theirs);
  EXPECT_EQ(int{kSignaled}, int{MLX5_WQE_CTRL_CQ_UPDATE});
  EXPECT_EQ(int{kSolicited}, int{MLX5_WQE_CTRL_SOLICITED});
  EXPECT_EQ(int{kSmallFence}, int{MLX5_WQE_CTRL_INITIATOR_SMALL_FENCE});
  EXPECT_EQ(int{kFence}, int{MLX5_WQE_CTRL_FENCE});
}

/// Returns the entry as the structs and functions of mlx5dv.h make it.
Bytes by_mlx5dv(std::uint64_t position, std::uint32_t queue, const SendWork& work) {
  Bytes bytes(sizeof(mlx5_wqe_ctrl_seg));
  const auto append = [&](const auto& segment) {
    const auto* const from = reinterpret_cast<const std::uint8_t*>(&segment);
    bytes.insert(bytes.end(), from, from + sizeof segment);
  };
  if (has_remote(work.opcode)) {
    mlx5_wqe_raddr_seg remote{};
    remote.raddr = htobe64(work.remote.address);
    remote.rkey = htobe32(work.remote.rkey);
    append(remote);
  }
  if (is_atomic(work.opcode)) {
    mlx5_wqe_atomic_seg atomic{};
    const bool swaps = work.opcode == Opcode::compare_swap;
    atomic.swap_add = htobe64(swaps ? work.swap : work.compare_add);
    atomic.compare = swaps ? htobe64(work.compare_add) : 0;
    append(atomic);
  }
  if (work.inline_length != 0) {
    mlx5_wqe_inl_data_seg header{};
    header.byte_count = htobe32(work.inline_length | static_cast<std::uint32_t>(MLX5_INLINE_SEG));
    append(header);
    const auto* const from = static_cast<const std::uint8_t*>(work.inline_data);
    bytes.insert(bytes.end(), from, from + work.inline_length);
    bytes.resize((bytes.size() + 15) / 16 * 16);
  }
  for (std::uint32_t i = 0; i < work.buffer_count; ++i) {
    if (work.buffers[i].length == 0) continue;
    mlx5_wqe_data_seg data{};
    mlx5dv_set_data_seg(&data, work.buffers[i].length, work.buffers[i].lkey,
                        work.buffers[i].address);
    append(data);
  }
  mlx5_wqe_ctrl_seg control{};
  mlx5dv_set_ctrl_seg(&control, static_cast<std::uint16_t>(position),
                      static_cast<std::uint8_t>(work.opcode), 0, queue, work.flags,
                      static_cast<std::uint8_t>(bytes.size() / 16), 0, work.immediate);
  std::memcpy(bytes.data(), &control, sizeof control);
  return bytes;
}

/// A ring, with the entry at `position` read back.
struct TestRing {
  explicit TestRing(std::uint32_t blocks) : segments(blocks * kSegmentsPerBlock) {
    std::memset(segments.data(), 0xa5, segments.size() * sizeof(Segment));
  }
  [[nodiscard]] SendRing ring() {
    return {segments.data(), static_cast<std::uint32_t>(segments.size()) / kSegmentsPerBlock};
  }
  [[nodiscard]] Bytes read(std::uint64_t position, std::uint32_t count) {
    Bytes bytes;
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto* const from = reinterpret_cast<const std::uint8_t*>(&ring().at(position, i));
      bytes.insert(bytes.end(), from, from + sizeof(Segment));
    }
    return bytes;
  }
  std::vector<Segment> segments;
};

// Each operation with any operands, at any position, so that entries wrap around the ring.
TEST(Wqe, EntriesAreThoseOfMlx5dv) {
  std::mt19937_64 random(1);
  const auto number = [&] { return random(); };
  Bytes data(900);
  for (auto& byte : data) byte = static_cast<std::uint8_t>(number());
  TestRing memory(16);
  for (int i = 0; i < 20'000; ++i) {
    std::array<LocalBuffer, 5> buffers{};
    for (auto& buffer : buffers) {
      const std::uint32_t length =
          number() % 4 == 0 ? 0 : static_cast<std::uint32_t>(number() >> 33);
      buffer = {number(), length, static_cast<std::uint32_t>(number())};
    }
    SendWork work;
    work.opcode = kAll[number() % std::size(kAll)];
    constexpr std::uint8_t kFlags[] = {0, kSignaled, kSignaled | kSolicited, kSignaled | kFence,
                                       kSmallFence};
    work.flags = kFlags[number() % std::size(kFlags)];
    work.immediate = static_cast<std::uint32_t>(number());
    work.remote = {number(), static_cast<std::uint32_t>(number())};
    work.compare_add = number();
    work.swap = number();
    if (number() % 2 == 0 && !is_atomic(work.opcode)) {
      work.inline_data = data.data();
      work.inline_length = 1 + static_cast<std::uint32_t>(number() % 850);
    } else {
      work.buffers = buffers.data();
      work.buffer_count = static_cast<std::uint32_t>(number() % 6);
    }
    const std::uint64_t position = number();
    const auto queue = static_cast<std::uint32_t>(number() & 0xff'ffffU);
    const std::uint32_t segments = segments_of(work);
    ASSERT_LE(segments, kMostSegments);
    write_entry(memory.ring(), position, queue, segments, work);
    const Bytes expected = by_mlx5dv(position, queue, work);
    ASSERT_EQ(memory.read(position, segments), expected) << "entry " << i;
    // The entry is the same as lanes write it, each a segment.
    const std::uint32_t lane = static_cast<std::uint32_t>(number()) % segments;
    const Segment part = segment_at(position, queue, segments, work, lane);
    ASSERT_EQ(std::memcmp(&part, &expected[lane * sizeof part], sizeof part), 0) << "entry " << i;
  }
}

// Checks the wait entries, for which mlx5dv.h has no struct.
TEST(Wqe, AWaitIsThatOfACard) {
  const std::uint32_t number = 0xab'cdef;
  Cqe cqe{};
  std::uint32_t record = 0;
  const Bytes of_completion = {0x00, 0x12, 0x34, 0x0f, 0x98, 0x76, 0x54, 0x02,  //
                               0x00, 0x00, 0x00, 0x08, 0x00, 0x00, 0x00, 0x00,  //
                               0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,  //
                               0x00, 0x45, 0x67, 0x89, 0x00, 0xab, 0xcd, 0xef};
  const Bytes of_time = {0x02, 0x12, 0x34, 0x0f, 0x98, 0x76, 0x54, 0x03,  //
                         0x00, 0x00, 0x00, 0x08, 0x00, 0x00, 0x00, 0x00,  //
                         0x00, 0x00, 0x00, 0x05, 0x00, 0x00, 0x00, 0x00,  //
                         0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,  //
                         0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88,  //
                         0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
  const std::pair<SendWork, Bytes> all[] = {
      {wait_for_completion({&cqe, 0, &record, number}, 0x1'2345'6789), of_completion},
      {wait_for_time(0x1122'3344'5566'7788), of_time}};
  for (auto [work, expected] : all) {
    work.flags = kSignaled;
    TestRing memory(4);
    const std::uint32_t segments = segments_of(work);
    ASSERT_EQ(segments * sizeof(Segment), expected.size());
    const Segment control = write_entry(memory.ring(), 0x71234, 0x98'7654, segments, work);
    EXPECT_EQ(memory.read(0x71234, segments), expected);
    EXPECT_EQ(std::memcmp(&control, expected.data(), sizeof control), 0);
    for (std::uint32_t lane = 0; lane < segments; ++lane) {
      const Segment part = segment_at(0x71234, 0x98'7654, segments, work, lane);
      EXPECT_EQ(std::memcmp(&part, &expected[lane * sizeof part], sizeof part), 0) << lane;
    }
  }
}

TEST(Wqe, NothingBesideTheEntryIsWritten) {
  const std::uint8_t data[44]{};
  for (const std::uint32_t length : {1U, 12U, 13U, 28U, 44U}) {
    TestRing memory(4);
    const auto before = memory.segments;
    SendWork work;
    work.opcode = Opcode::send;
    work.inline_data = data;
    work.inline_length = length;
    const std::uint32_t segments = segments_of(work);
    EXPECT_EQ(segments, 1 + (4 + length + 15) / 16);
    write_entry(memory.ring(), 3, 7, segments, work);
    for (std::uint32_t i = segments; i < memory.segments.size(); ++i) {
      EXPECT_EQ(std::memcmp(&memory.ring().at(3, i), &before[0], sizeof(Segment)), 0) << i;
    }
  }
}

TEST(Wqe, AReceiveIsADataSegment) {
  const Segment segment = data_segment({0x1122'3344'5566'7788, 0x99aa'bbcc, 0xddee'ff00});
  const std::uint8_t expected[16] = {0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff, 0x00,
                                     0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88};
  EXPECT_EQ(std::memcmp(&segment, expected, sizeof expected), 0);
  const Segment receive = receive_segment({0x1122'3344'5566'7788, 0x99aa'bbcc, 0xddee'ff00});
  EXPECT_EQ(std::memcmp(&receive, expected, sizeof expected), 0);
  // A card takes a length of 0 as 2^31: the key says that there is no buffer.
  const Segment none = receive_segment({0x1122'3344'5566'7788, 0, 7});
  const std::uint8_t of_none[16] = {0, 0, 0, 0, 0, 0, 1, 0};
  EXPECT_EQ(std::memcmp(&none, of_none, sizeof of_none), 0);
}

}  // namespace
}  // namespace offload::kernels::rdma
