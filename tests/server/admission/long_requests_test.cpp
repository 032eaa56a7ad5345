#include "apps/server/admission/long_requests.hpp"

#include <gtest/gtest.h>

namespace offload::server {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kShortRequest = 64;
constexpr std::size_t kLongRequest = 300 * 1024;
constexpr std::size_t kLongestRequest = 16 * 1024 * 1024;

class LongRequestsTest : public testing::Test {
 protected:
  bool post(std::size_t length) {
    if (!requests_.may_post(length, awaited_, now_)) return false;
    requests_.note_posted(length, now_);
    ++awaited_;
    return true;
  }

  core::TimePoint now_ = core::TimePoint{} + 1h;
  std::uint64_t awaited_ = 0;
  LongRequests requests_{16};
};

TEST_F(LongRequestsTest, WithoutShortOnesTheChannelIsTheirs) {
  for (int i = 0; i < 16; ++i) EXPECT_TRUE(post(kLongestRequest));
}

TEST_F(LongRequestsTest, BesideShortOnesTheyAreBoundedInBytes) {
  EXPECT_TRUE(post(kShortRequest));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(post(kLongRequest));
  EXPECT_FALSE(post(kLongRequest));
  EXPECT_TRUE(post(kShortRequest));
  awaited_ -= 2;  // the first short one is answered, and the first long one
  EXPECT_TRUE(post(kLongRequest));
  EXPECT_FALSE(post(kLongRequest));
}

TEST_F(LongRequestsTest, OneIsAlwaysLetIn) {
  EXPECT_TRUE(post(kShortRequest));
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(post(kLongestRequest));
    EXPECT_FALSE(post(kLongestRequest));
    EXPECT_FALSE(post(kLongRequest));
    EXPECT_TRUE(post(kShortRequest));
    awaited_ = 1;  // but for the last one
  }
}

TEST_F(LongRequestsTest, AShortOneHasAtMost64KiB) {
  EXPECT_TRUE(post(kLongestRequest));
  EXPECT_TRUE(post(64 * 1024 + 1));
  EXPECT_TRUE(post(kLongestRequest)) << "no short one is there";
  EXPECT_TRUE(post(64 * 1024));
  EXPECT_FALSE(post(kLongestRequest));
}

TEST_F(LongRequestsTest, ShortOnesAreForgotten) {
  EXPECT_TRUE(post(kShortRequest));
  EXPECT_TRUE(post(kLongestRequest));
  EXPECT_FALSE(post(kLongestRequest));
  now_ += 1s;
  EXPECT_TRUE(post(kLongestRequest));
}

}  // namespace
}  // namespace offload::server
