#include "kernels/rdma_tasks/buffers.hpp"

#include <gtest/gtest.h>

#include <array>

namespace offload::kernels::rdma::test {
namespace {

TEST(ArrayBuffers, AreOperandsWithTheArraysKeys) {
  std::array<std::uint8_t, 300> memory{};
  const BufferArrayView array{memory.data(), 100, 150, 2, 7, 9};
  const LocalBuffer local = local_buffer(array.at(1));
  EXPECT_EQ(local.address, reinterpret_cast<std::uint64_t>(memory.data() + 150));
  EXPECT_EQ(local.length, 100U);
  EXPECT_EQ(local.lkey, 7U);
  EXPECT_EQ(local_buffer(array.at(1), 30).length, 30U);
  EXPECT_EQ(local_buffer(array.at(1), 101).length, 100U);  // not beyond the element
  const RemotePointer remote = remote_pointer(array.at(1));
  EXPECT_EQ(remote.address, local.address);
  EXPECT_EQ(remote.rkey, 9U);
  EXPECT_EQ(local_buffer(array.at(2)).length, 0U);  // no buffer
  const BufferElement large{memory.data(), 1ULL << 40, 1, 2};
  EXPECT_EQ(local_buffer(large).length, 1U << 31);
}

}  // namespace
}  // namespace offload::kernels::rdma::test
