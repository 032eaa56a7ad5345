#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "packets/program/steering.h"

namespace offload::packets {
namespace {

// 10.9.0.2 in network order, as the XDP program reads it on a little-endian processor.
constexpr std::array<__u32, 4> kSource{0x0200090a, 0, 0, 0};
constexpr __u32 kPort = 4000;

/// How many of `senders` sockets, whose ports have a distance of `stride`, each queue gets.
std::vector<unsigned> shares(__u32 first_port, __u32 stride, __u32 senders, __u32 queues) {
  std::vector<unsigned> counts(queues);
  for (__u32 i = 0; i < senders; ++i) {
    const __u32 port = first_port + i * stride;
    ++counts.at(offload_queue_of_sender(kSource.data(), port, kPort, queues));
  }
  return counts;
}

class SpreadTest : public testing::TestWithParam<__u32> {};

TEST_P(SpreadTest, ManySendersLoadEachQueueAlike) {
  constexpr __u32 kSenders = 1024;
  for (const __u32 queues : {2U, 3U, 4U, 8U, 16U}) {
    for (const __u32 first_port : {1024U, 32768U, 40001U}) {
      for (const unsigned share : shares(first_port, GetParam(), kSenders, queues)) {
        EXPECT_GT(share * queues, kSenders / 2) << queues << " queues from port " << first_port;
        EXPECT_LT(share * queues, kSenders * 3 / 2) << queues << " queues from port " << first_port;
      }
    }
  }
}

// Eight balls thrown into four boxes leave one empty in 38 % of all throws.
TEST_P(SpreadTest, FewSendersLeaveAQueueIdleAsSeldomAsAtRandom) {
  constexpr unsigned kTries = 1000;
  unsigned idle = 0;
  for (unsigned i = 0; i < kTries; ++i) {
    const auto counts = shares(32768 + 28 * i, GetParam(), 8, 4);
    if (std::count(counts.begin(), counts.end(), 0U) != 0) ++idle;
  }
  EXPECT_LT(idle, kTries * 45 / 100);
  EXPECT_GT(idle, kTries * 30 / 100);
}

INSTANTIATE_TEST_SUITE_P(Strides, SpreadTest, testing::Values(1, 2, 4, 8, 16));

// test_udp.py expects the same of the XDP program.
TEST(Spread, IsTheSameInEachBuild) {
  EXPECT_EQ(shares(5000, 1, 8, 2), (std::vector<unsigned>{3, 5}));
  EXPECT_EQ(shares(5000, 1, 32, 4), (std::vector<unsigned>{7, 9, 8, 8}));
}

}  // namespace
}  // namespace offload::packets
