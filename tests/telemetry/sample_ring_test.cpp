#include "telemetry/sample_ring.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace offload::telemetry {
namespace {

struct Times {
  std::uint64_t posted;
  std::uint64_t seen;
  std::uint64_t written;
  std::uint64_t length;
};
using Ring = SampleRing<Times>;

Times sample(std::uint64_t number) {
  return {number, 2 * number, 3 * number, 4 * number};
}

bool is_whole(const Times& read) {
  return read.seen == 2 * read.posted && read.written == 3 * read.posted &&
         read.length == 4 * read.posted;
}

TEST(SampleRing, HasTheLastOnesTheOldestFirst) {
  Ring ring;
  EXPECT_TRUE(ring.latest().empty());
  ring.add(sample(7));
  ASSERT_EQ(ring.latest().size(), 1U);
  EXPECT_EQ(ring.latest().front().posted, 7U);
  for (std::uint64_t i = 1; i <= Ring::kMost + 3; ++i) ring.add(sample(i));
  const auto samples = ring.latest();
  ASSERT_EQ(samples.size(), Ring::kMost);
  EXPECT_EQ(samples.front().posted, 4U);
  EXPECT_EQ(samples.back().posted, Ring::kMost + 3);
}

TEST(SampleRing, NoReaderSeesOneThatChanges) {
  Ring ring;
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (std::uint64_t i = 1; !stop.load(std::memory_order_relaxed); ++i) ring.add(sample(i));
  });
  std::size_t whole = 0;
  for (int i = 0; i < 2000 || whole == 0; ++i) {
    std::uint64_t last = 0;
    for (const Times& read : ring.latest()) {
      ASSERT_TRUE(is_whole(read)) << read.posted << ' ' << read.seen << ' ' << read.written;
      ASSERT_GT(read.posted, last);
      last = read.posted;
      ++whole;
    }
  }
  stop.store(true, std::memory_order_relaxed);
  writer.join();
}

}  // namespace
}  // namespace offload::telemetry
