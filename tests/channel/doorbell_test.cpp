#include "channel/doorbell.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <iostream>
#include <vector>

#include "tests/support/race.hpp"
#include "tests/support/readable.hpp"

namespace offload::channel {
namespace {

using support::is_readable;

class Doorbell : public testing::Test {
 protected:
  kernels::Doorbell word_{};
  DoorbellPipe pipe_ = DoorbellPipe::make();
  Waiter waiter_{word_, pipe_.waiting.get()};
  Ringer ringer_{word_, pipe_.ringing.get()};
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
    std::array<std::byte, 8> wake_ups{};
    EXPECT_EQ(::read(waiter_.fd(), wake_ups.data(), wake_ups.size()), 1);
  }
}

// A peer may write anything into the shared word.
TEST_F(Doorbell, AnyWordButZeroIsArmed) {
  word_.armed = 0xffff'ffff;
  ringer_.ring();
  EXPECT_TRUE(is_readable(waiter_.fd(), 0));
  EXPECT_EQ(word_.armed, 0U);
}

// A worker of another user opens its end again.
TEST_F(Doorbell, EachUserMayOpenItAgain) {
  for (const core::Fd* end : {&pipe_.waiting, &pipe_.ringing}) {
    struct stat status {};
    ASSERT_EQ(::fstat(end->get(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777U, 0666U);
  }
}

int flags_of(const core::Fd& fd) {
  return ::fcntl(fd.get(), F_GETFL);
}

TEST_F(Doorbell, ADrainTakesManyRingsAtOnce) {
  for (int i = 0; i < 200; ++i) {
    waiter_.arm();
    ringer_.ring();
  }
  waiter_.drain();
  EXPECT_FALSE(is_readable(waiter_.fd(), 0));
}

// The waiter's end is the peer's: it fills the pipe by not draining it, and makes its own end
// block. Neither changes the ringer's end.
TEST_F(Doorbell, AWaiterThatDoesNotDrainCannotMakeRingBlock) {
  const int waiting = flags_of(pipe_.waiting);
  ASSERT_EQ(::fcntl(pipe_.waiting.get(), F_SETFL, waiting & ~O_NONBLOCK), 0);
  EXPECT_NE(flags_of(pipe_.ringing) & O_NONBLOCK, 0);
  const std::vector<std::byte> much(1 << 20);
  while (::write(pipe_.ringing.get(), much.data(), much.size()) > 0) continue;
  ASSERT_EQ(errno, EAGAIN);
  for (int i = 0; i < 3; ++i) {
    waiter_.arm();
    ringer_.ring();  // returns
    EXPECT_EQ(word_.armed, 0U);
  }
}

// The ringer's end is the peer's: it makes its own block, and fills the pipe, or writes nothing.
TEST_F(Doorbell, ARingerCannotMakeADrainBlock) {
  const int ringing = flags_of(pipe_.ringing);
  ASSERT_EQ(::fcntl(pipe_.ringing.get(), F_SETFL, ringing & ~O_NONBLOCK), 0);
  EXPECT_NE(flags_of(pipe_.waiting) & O_NONBLOCK, 0);
  waiter_.drain();  // of nothing
  const std::vector<std::byte> rings(10'000);
  ASSERT_EQ(::write(pipe_.ringing.get(), rings.data(), rings.size()), 10'000);
  waiter_.drain();  // a part: the rest makes the next event
  EXPECT_TRUE(is_readable(waiter_.fd(), 0));
}

TEST_F(Doorbell, APeerThatHasClosedItsEndHarmsNobody) {
  std::signal(SIGPIPE, SIG_IGN);  // as the programs do
  pipe_.waiting.reset();
  waiter_.arm();
  ringer_.ring();
  EXPECT_EQ(word_.armed, 0U);
}

/// Passes one number at a time from producer to waiter, as channel and engine do it: the waiter
/// arms and looks while the producer publishes and rings. A waiter that would sleep now does not
/// (the rounds would be limited by the cost of a sleep), but waits in memory until the ring is
/// over: if the ring has not arrived by then, it never will.
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
      count(found, take_rings());
      waiter_.disarm();
      taken_.store(number, std::memory_order_release);  // pairs with await
    }
  }

  void count(bool found, bool was_rung) {
    ++rounds;
    ++(found ? (was_rung ? both : met) : (was_rung ? rung : lost));
  }

  bool take_rings() {
    std::array<std::byte, 8> rings{};
    return ::read(pipe_.waiting.get(), rings.data(), rings.size()) > 0;
  }

  kernels::Doorbell word_{};
  DoorbellPipe pipe_ = DoorbellPipe::make();
  Waiter waiter_{word_, pipe_.waiting.get()};
  Ringer ringer_{word_, pipe_.ringing.get()};
  alignas(128) std::atomic<std::uint32_t> published_{0};
  alignas(128) std::atomic<std::uint32_t> rung_{0};
  alignas(128) std::atomic<std::uint32_t> taken_{0};
};

TEST(DoorbellRace, NoWakeUpIsLost) {
  Race race;
  race.run();
  EXPECT_EQ(race.lost, 0U);
  EXPECT_EQ(race.rounds, support::race::kRounds);
  // The counts depend on the machine.
  std::cout << race.rounds << " rounds: " << race.met << " numbers met after arming, " << race.rung
            << " rung for, " << race.both << " both\n";
}

}  // namespace
}  // namespace offload::channel
