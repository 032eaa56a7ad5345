#include "rdma/mlx5/doorbell.hpp"

#include <gtest/gtest.h>

#include "kernels/rdma/queue_pair.hpp"

namespace offload::rdma::mlx5 {
namespace {

TEST(DoorbellRelay, CarriesEachRingOnce) {
  std::uint64_t word = 0;
  volatile std::uint64_t card = 0;
  DoorbellRelay relay(&word, &card);
  EXPECT_FALSE(relay.relay());
  kernels::rdma::SendQueue queue{};
  queue.number = 0x42;
  for (std::uint32_t i = 0; i < 100'000; i += 777) {
    kernels::rdma::ring_doorbell(&word, kernels::rdma::doorbell_of(queue, i));
    EXPECT_TRUE(relay.relay());
    EXPECT_EQ(card, word);
    card = 0;
    EXPECT_FALSE(relay.relay());
    EXPECT_EQ(card, 0U);
  }
}

}  // namespace
}  // namespace offload::rdma::mlx5
