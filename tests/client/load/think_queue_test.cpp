#include "apps/client/load/think_queue.hpp"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstddef>

namespace offload::client {
namespace {

using namespace std::chrono_literals;

/// The queue keeps the addresses of flows, and looks at nothing there.
class ThinkQueueTest : public testing::Test {
 protected:
  Flow& flow(std::size_t number) { return *reinterpret_cast<Flow*>(&places_[number]); }
  [[nodiscard]] static core::TimePoint at(core::Duration time) { return core::TimePoint{} + time; }

  std::array<std::max_align_t, 3> places_{};
  ThinkQueue queue_{10us, 3};
};

TEST_F(ThinkQueueTest, EndsInTheOrderOfTheBegin) {
  EXPECT_TRUE(queue_.is_empty());
  core::Duration begun{};
  core::Duration ended{};
  // Laps of its four places, and of all fills from one to three.
  for (std::size_t lap = 0; lap < 20; ++lap) {
    const std::size_t count = 1 + lap % 3;
    for (std::size_t i = 0; i < count; ++i) queue_.begin(flow(i), at(begun += 1us));
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_FALSE(queue_.is_empty());
      EXPECT_EQ(queue_.next_end(), at((ended += 1us) + 10us));
      EXPECT_EQ(&queue_.end_next(), &flow(i));
    }
    EXPECT_TRUE(queue_.is_empty());
  }
}

TEST_F(ThinkQueueTest, TellsWhetherTheSameFlowEndsAgain) {
  EXPECT_FALSE(queue_.ends_again(flow(0), at(1h)));
  queue_.begin(flow(0), at(0us));
  queue_.begin(flow(0), at(1us));
  queue_.begin(flow(1), at(1us));
  EXPECT_EQ(&queue_.end_next(), &flow(0));
  EXPECT_FALSE(queue_.ends_again(flow(0), at(10us)));
  EXPECT_TRUE(queue_.ends_again(flow(0), at(11us)));
  EXPECT_FALSE(queue_.ends_again(flow(1), at(11us)));
  EXPECT_EQ(&queue_.end_next(), &flow(0));
  EXPECT_FALSE(queue_.ends_again(flow(0), at(11us)));
  EXPECT_TRUE(queue_.ends_again(flow(1), at(11us)));
}

}  // namespace
}  // namespace offload::client
