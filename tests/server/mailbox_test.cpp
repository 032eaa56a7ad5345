#include "apps/server/mailbox.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "tests/support/eventually.hpp"

namespace offload::server {
namespace {

using Numbers = std::vector<int>;

auto adding(int number) {
  return [number](Numbers& numbers) { numbers.push_back(number); };
}

TEST(Mailbox, GivesWhatWasPutSinceItWasLastTaken) {
  Mailbox<Numbers> mailbox;
  EXPECT_FALSE(mailbox.take().has_value());
  (void)mailbox.put(adding(1));
  (void)mailbox.put(adding(2));
  EXPECT_EQ(mailbox.take(), (Numbers{1, 2}));
  EXPECT_FALSE(mailbox.take().has_value());
  (void)mailbox.put(adding(3));
  EXPECT_EQ(mailbox.take(), Numbers{3});
}

TEST(Mailbox, TheReaderIsWokenOnceForWhatItTakesAtOnce) {
  Mailbox<Numbers> mailbox;
  EXPECT_TRUE(mailbox.put(adding(1)));
  EXPECT_FALSE(mailbox.put(adding(2)));
  (void)mailbox.take();
  EXPECT_TRUE(mailbox.put(adding(3)));
}

TEST(Mailbox, BetweenThreadsNothingIsLostAndTheOrderStays) {
  constexpr int kCount = 20'000;
  Mailbox<Numbers> mailbox;
  std::thread writer([&] {
    for (int i = 0; i < kCount; ++i) (void)mailbox.put(adding(i));
  });
  Numbers all;
  const auto take = [&] {
    if (const auto some = mailbox.take()) {
      all.insert(all.end(), some->begin(), some->end());
    } else {
      std::this_thread::yield();
    }
  };
  EXPECT_TRUE(support::eventually([&] { return all.size() == kCount; }, take));
  writer.join();
  for (std::size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], static_cast<int>(i));
}

}  // namespace
}  // namespace offload::server
