#include "apps/server/mailbox.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "tests/support/eventually.hpp"
#include "tests/support/race.hpp"

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

// Each round one put comes while the reader takes the one before it.
TEST(MailboxRace, NothingStaysBehind) {
  constexpr std::uint32_t kRounds = support::race::kRounds / 20;  // each takes four locks
  Mailbox<int> mailbox;
  alignas(128) std::atomic<std::uint32_t> put{0};
  alignas(128) std::atomic<std::uint32_t> taken{0};
  const auto add = [&] { (void)mailbox.put([](int& content) { ++content; }); };
  std::uint32_t lost = 0;
  const auto write = [&] {
    for (std::uint32_t round = 1; round <= kRounds; ++round) {
      add();
      support::race::pause(round % 61);
      add();
      put.store(round, std::memory_order_release);  // pairs with await
      support::race::await(taken, round);
    }
  };
  const auto read = [&] {
    for (std::uint32_t round = 1; round <= kRounds; ++round) {
      int content = 0;
      while (content == 0 && put.load(std::memory_order_acquire) != round) {
        content += mailbox.take().value_or(0);
      }
      support::race::await(put, round);
      content += mailbox.take().value_or(0);
      if (content != 2) {
        ++lost;
        add();  // it is seen again
        (void)mailbox.take();
      }
      taken.store(round, std::memory_order_release);  // pairs with await
    }
  };
  support::race::run(read, write);
  EXPECT_EQ(lost, 0U);
}

}  // namespace
}  // namespace offload::server
