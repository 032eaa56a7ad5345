#include "kernels/rdma/ethernet.hpp"

#include <gtest/gtest.h>
#include <infiniband/mlx5dv.h>

#include <array>
#include <cstring>
#include <vector>

/// Checks that entries and completions of raw packets are those that infiniband/mlx5dv.h describes.
namespace offload::kernels::rdma {
namespace {

constexpr std::uint32_t kQueue = 0x123456;
constexpr std::uint32_t kBlocks = 4;

using Bytes = std::vector<std::uint8_t>;

/// Returns the entry as the structs and functions of mlx5dv.h make it.
Bytes by_mlx5dv(std::uint64_t position, const RawWork& work) {
  Bytes bytes(kBlockBytes);
  auto* const control = reinterpret_cast<mlx5_wqe_ctrl_seg*>(bytes.data());
  auto* const ethernet = reinterpret_cast<mlx5_wqe_eth_seg*>(control + 1);
  Bytes header(work.bytes, work.bytes + work.inline_bytes);
  header.reserve(1);  // the function needs an address, even for no bytes
  mlx5dv_set_eth_seg(ethernet, work.checksums, 0, static_cast<std::uint16_t>(work.inline_bytes),
                     header.data());
  const std::size_t inlined = work.inline_bytes > 2 ? sizeof *ethernet : 16;
  std::size_t size = sizeof *control + inlined;
  if (work.frame.length > work.inline_bytes) {
    mlx5dv_set_data_seg(reinterpret_cast<mlx5_wqe_data_seg*>(bytes.data() + size),
                        work.frame.length - work.inline_bytes, work.frame.lkey,
                        static_cast<std::uintptr_t>(work.frame.address + work.inline_bytes));
    size += sizeof(mlx5_wqe_data_seg);
  }
  mlx5dv_set_ctrl_seg(control, static_cast<std::uint16_t>(position), MLX5_OPCODE_SEND, 0, kQueue,
                      work.flags, static_cast<std::uint8_t>(size / 16), 0, 0);
  bytes.resize(size);
  return bytes;
}

TEST(RawPacketEntry, IsThatOfMlx5) {
  EXPECT_EQ(int{kIpChecksum}, int{MLX5_ETH_WQE_L3_CSUM});
  EXPECT_EQ(int{kTransportChecksum}, int{MLX5_ETH_WQE_L4_CSUM});
  Bytes frame(100);
  for (std::size_t i = 0; i < frame.size(); ++i) frame[i] = static_cast<std::uint8_t>(3 * i + 1);
  for (std::uint32_t inlined = 0; inlined <= kMostInlineHeader; ++inlined) {
    for (const std::uint32_t length : {kMostInlineHeader, 60U, 100U}) {
      std::array<Segment, kBlocks * kSegmentsPerBlock> ring{};
      RawWork work;
      work.frame = {0x1122'3344'5566'7788, length, 0x99};
      work.bytes = frame.data();
      work.inline_bytes = inlined;
      work.flags = kSignaled;
      work.checksums = kIpChecksum | kTransportChecksum;
      const std::uint64_t position = 0x1'fffd + inlined;
      write_raw_entry({ring.data(), kBlocks}, position, kQueue, work);
      const Bytes expected = by_mlx5dv(position, work);
      EXPECT_EQ(std::memcmp(&ring[position % kBlocks * kSegmentsPerBlock], expected.data(),
                            expected.size()),
                0)
          << inlined << ' ' << length;
    }
  }
}

TEST(RawPacketEntry, OfNoFrameDoesNothing) {
  std::array<Segment, kBlocks * kSegmentsPerBlock> ring{};
  write_no_entry({ring.data(), kBlocks}, 0x1'fffe, kQueue, kSignaled);
  mlx5_wqe_ctrl_seg expected{};
  mlx5dv_set_ctrl_seg(&expected, 0xfffe, MLX5_OPCODE_NOP, 0, kQueue, MLX5_WQE_CTRL_CQ_UPDATE, 1, 0,
                      0);
  EXPECT_EQ(std::memcmp(&ring[2 * kSegmentsPerBlock], &expected, sizeof expected), 0);
}

TEST(RawPacketCompletion, IsReadWhereMlx5HasItsFields) {
  mlx5_cqe64 theirs{};
  theirs.byte_cnt = htobe32(1500);
  theirs.wqe_counter = htobe16(7);
  theirs.timestamp = htobe64(0x1234'5678'9abc'def0);
  theirs.op_own = MLX5_CQE_RESP_SEND << 4;
  for (const int found : {0, 1, 2, 3}) {
    theirs.hds_ip_ext =
        static_cast<std::uint8_t>(MLX5_CQE_L2_OK | ((found & 1) != 0 ? MLX5_CQE_L3_OK : 0) |
                                  ((found & 2) != 0 ? MLX5_CQE_L4_OK : 0));
    Cqe cqe;
    std::memcpy(&cqe, &theirs, sizeof cqe);
    const Completion completion = read_cqe(cqe);
    EXPECT_EQ(completion.byte_count, 1500U);
    EXPECT_EQ(completion.time, 0x1234'5678'9abc'def0U);
    EXPECT_EQ(ip_is_right(completion), (found & 1) != 0);
    EXPECT_EQ(transport_is_right(completion), (found & 2) != 0);
    // make_cqe(), which stands for a card, writes the same.
    Completion made = completion;
    made.ethernet = ethernet_word((found & 1) != 0, (found & 2) != 0);
    const Cqe written = make_cqe(made, 0, 4);
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(&theirs);
    EXPECT_EQ(std::memcmp(written.words, bytes, sizeof written.words), 0);
  }
}

}  // namespace
}  // namespace offload::kernels::rdma
