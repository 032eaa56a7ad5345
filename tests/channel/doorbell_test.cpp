#include "channel/doorbell.hpp"

#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <atomic>
#include <iostream>

#include "tests/support/race.hpp"
#include "tests/support/readable.hpp"

namespace offload::channel {
namespace {

using support::is_readable;

core::Fd make_eventfd() {
  return core::Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
}

class Doorbell : public testing::Test {
 protected:
  kernels::Doorbell word_{};
  core::Fd eventfd_ = make_eventfd();
  Waiter waiter_{word_, eventfd_.get()};
  Ringer ringer_{word_, eventfd_.get()};
};

TEST_F(Doorbell, IsSilentUnlessArmed) {
  ringer_.ring();
  EXPECT_FALSE(is_readable(waiter_.fd(), 0));
  waiter_.arm();
  waiter_.disarm();
  ringer_.ring();
  EXPECT_FALSE(is_readable(waiter_.fd(), 0));
}

TEST_F(Doorbell, RingsOnceForEachArming) {
  for (int i = 0; i < 3; ++i) {
    waiter_.arm();
    EXPECT_EQ(word_.armed, 1U);
    for (int rings = 0; rings < 5; ++rings) ringer_.ring();
    EXPECT_EQ(word_.armed, 0U);
    std::uint64_t wake_ups = 0;
    ASSERT_EQ(::read(waiter_.fd(), &wake_ups, sizeof wake_ups), 8);
    EXPECT_EQ(wake_ups, 1U);
  }
}

// A peer may write anything into the shared word.
TEST_F(Doorbell, AnyWordButZeroIsArmed) {
  word_.armed = 0xffff'ffff;
  ringer_.ring();
  EXPECT_TRUE(is_readable(waiter_.fd(), 0));
  EXPECT_EQ(word_.armed, 0U);
}

/// One number at a time from producer to waiter, the way that channel and engine do it: the waiter
/// arms and looks while the producer publishes and rings. One that would sleep now does not (which
/// would limit the rounds to what a sleep costs), but waits in memory until the ring is over: if
/// that has not come through by then, it never will.
class Race {
 public:
  void run() {
    support::race::run([this] { wait(); }, [this] { produce(); });
  }

  std::uint32_t rounds = 0;
  std::uint32_t met = 0;   ///< found the number after arming
  std::uint32_t rung = 0;  ///< did not, and was rung for
  std::uint32_t both = 0;  ///< found it, and was rung for: each side saw the other
  std::uint32_t lost = 0;  ///< neither

 private:
  void produce() {
    for (std::uint32_t number = 1; number <= support::race::kRounds; ++number) {
      support::race::pause(number % 32);
      published_.store(number, std::memory_order_release);
      ringer_.ring();
      rung_.store(number, std::memory_order_release);  // pairs with await
      support::race::await(taken_, number);
    }
  }

  void wait() {
    for (std::uint32_t number = 1; number <= support::race::kRounds; ++number) {
      support::race::pause(number % 61);
      waiter_.arm();
      const bool found = published_.load(std::memory_order_acquire) == number;
      if (found) waiter_.disarm();
      support::race::await(rung_, number);
      count(found, take_rings() != 0);
      waiter_.disarm();
      taken_.store(number, std::memory_order_release);  // pairs with await
    }
  }

  void count(bool found, bool was_rung) {
    ++rounds;
    ++(found ? (was_rung ? both : met) : (was_rung ? rung : lost));
  }

  std::uint64_t take_rings() {
    eventfd_t rings = 0;
    return ::eventfd_read(eventfd_.get(), &rings) == 0 ? rings : 0;
  }

  kernels::Doorbell word_{};
  core::Fd eventfd_ = make_eventfd();
  Waiter waiter_{word_, eventfd_.get()};
  Ringer ringer_{word_, eventfd_.get()};
  alignas(128) std::atomic<std::uint32_t> published_{0};
  alignas(128) std::atomic<std::uint32_t> rung_{0};
  alignas(128) std::atomic<std::uint32_t> taken_{0};
};

TEST(DoorbellRace, NoWakeUpIsLost) {
  Race race;
  race.run();
  EXPECT_EQ(race.lost, 0U);
  EXPECT_EQ(race.rounds, support::race::kRounds);
  // How many of each there are is up to the machine.
  std::cout << race.rounds << " rounds: " << race.met << " numbers met after arming, " << race.rung
            << " rung for, " << race.both << " both\n";
}

}  // namespace
}  // namespace offload::channel
