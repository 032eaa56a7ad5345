#include <gtest/gtest.h>

#include <array>
#include <fstream>

#include "tests/kernels/rdma/entry_vector.hpp"

namespace offload::kernels::rdma::test {
namespace {

/// Entries that libmlx5's own functions made (scripts/mlx5-vectors), of requests of all kinds.
TEST(Wqe, EntriesAreThoseOfLibmlx5) {
  std::ifstream file(OFFLOAD_TEST_ENTRIES);
  std::size_t count = 0;
  std::array<Segment, 64 * kSegmentsPerBlock> memory{};
  const SendRing ring{memory.data(), 64};
  for (EntryVector vector; file >> vector; ++count) {
    memory.fill({});
    const SendWork work = vector.request();
    const std::uint32_t segments = segments_of(work);
    ASSERT_EQ(segments * sizeof(Segment), vector.entry.size()) << vector;
    write_entry(ring, vector.position, vector.queue, segments, work);
    for (std::uint32_t i = 0; i < segments; ++i) {
      EXPECT_EQ(std::memcmp(&ring.at(vector.position, i), vector.entry.data() + i * sizeof(Segment),
                            sizeof(Segment)),
                0)
          << "segment " << i << " of " << vector;
    }
  }
  EXPECT_TRUE(file.eof());
  EXPECT_EQ(count, 250U);
}

}  // namespace
}  // namespace offload::kernels::rdma::test
