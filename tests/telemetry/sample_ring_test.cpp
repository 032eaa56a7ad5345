#include "telemetry/sample_ring.hpp"

#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

#include "tests/support/step_through.hpp"

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
  std::jthread writer([&](const std::stop_token& stop) {
    for (std::uint64_t i = 1; !stop.stop_requested(); ++i) ring.add(sample(i));
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
}

#if defined(OFFLOAD_CAN_STEP_THROUGH)

// The slot of the first sample gets another one after each instruction of the reader in turn.
TEST(SampleRing, AReaderLeavesOutWhatChangedMeanwhile) {
  std::size_t left_out = 0;
  bool is_read = false;
  for (int at = 0; left_out == 0 || !is_read; ++at) {
    is_read = false;
    Ring ring;
    ring.add(sample(1));
    std::vector<Times> read;
    int steps = 0;
    bool overtaken = false;
    support::step_through([&] { read = ring.latest(); },
                          [&] {
                            if (steps++ != at) return true;
                            for (std::uint64_t i = 2; i <= Ring::kMost + 1; ++i)
                              ring.add(sample(i));
                            overtaken = true;
                            return false;
                          });
    ASSERT_TRUE(overtaken) << "none is left out";
    for (const Times& one : read) {
      ASSERT_TRUE(is_whole(one)) << at << ": " << one.posted << ' ' << one.seen;
    }
    if (read.empty()) {
      ++left_out;
    } else {
      // The first sample, before it is replaced, or all that the ring has after that.
      ASSERT_EQ(read.front().posted, read.size() == 1 ? 1U : 2U) << at;
      is_read = true;
    }
  }
}

// The reader comes after each instruction of the writer, which replaces the first sample.
TEST(SampleRing, AWriterSaysThatItsSlotChangesBeforeItDoes) {
  Ring ring;
  for (std::uint64_t i = 1; i <= Ring::kMost; ++i) ring.add(sample(i));
  std::size_t torn = 0;
  std::set<std::size_t> counts;
  support::step_through([&] { ring.add(sample(Ring::kMost + 1)); },
                        [&] {
                          const std::vector<Times> read = ring.latest();
                          counts.insert(read.size());
                          for (const Times& one : read) torn += is_whole(one) ? 0U : 1U;
                          return true;
                        });
  EXPECT_EQ(torn, 0U);
  EXPECT_EQ(counts, (std::set<std::size_t>{Ring::kMost - 1, Ring::kMost}));  // without and with it
}

#endif

}  // namespace
}  // namespace offload::telemetry
