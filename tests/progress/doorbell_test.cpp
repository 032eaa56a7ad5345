#include "progress/doorbell.hpp"

#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <atomic>
#include <chrono>
#include <latch>
#include <thread>

#include "core/cpu.hpp"
#include "tests/support/readable.hpp"

namespace offload::progress {
namespace {

using namespace std::chrono_literals;
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

/// One number at a time from producer to waiter, the way that channel and engine do it.
class Race {
 public:
  /// Until `count` numbers went over, or `limit` passed and one of them found the waiter asleep. A
  /// wake-up that is lost shows as a sleep that reaches its bound while a number is there.
  void run(std::uint32_t count, std::chrono::milliseconds limit) {
    const auto end = std::chrono::steady_clock::now() + limit;
    // On one processor there would be no race.
    const auto cpus = core::allowed_cpus();
    std::latch pinned(1);  // one after the other: libnuma has a cache
    std::thread producer([&] {
      pinned.wait();
      core::pin_this_thread(cpus.front());
      produce(count, end);
    });
    std::thread waiter([&] {
      core::pin_this_thread(cpus.back());
      pinned.count_down();
      while (!ended_ && lost_ == 0) take_one();
      ended_ = true;
    });
    producer.join();
    waiter.join();
  }

  std::uint32_t taken() const { return taken_; }
  std::uint32_t sleeps() const { return sleeps_; }
  std::uint32_t lost() const { return lost_; }

 private:
  static constexpr int kSleepBound = 2000;  ///< milliseconds

  /// Now the producer is sooner and now the waiter: each offset of the two is met.
  static void pause(std::uint32_t turns) {
    for (std::uint32_t i = 0; i < turns; ++i) core::cpu_relax();
  }

  void produce(std::uint32_t count, std::chrono::steady_clock::time_point end) {
    for (std::uint32_t number = 1; number <= count && !ended_; ++number) {
      pause(number % 64);
      published_.store(number, std::memory_order_release);
      ringer_.ring();
      while (taken_.load(std::memory_order_acquire) != number && !ended_) {
        if (std::chrono::steady_clock::now() > end + std::chrono::milliseconds(kSleepBound)) break;
      }
      if (sleeps_ > 0 && std::chrono::steady_clock::now() > end) break;
    }
    ended_ = true;
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(eventfd_.get(), &one, sizeof one);
  }

  /// Takes the next number, asleep if need be.
  void take_one() {
    pause(taken_.load(std::memory_order_relaxed) % 127);
    if (is_there()) return;
    waiter_.arm();
    if (!is_there()) {
      ++sleeps_;
      if (!is_readable(waiter_.fd(), kSleepBound) && is_published()) ++lost_;
      std::uint64_t wake_ups = 0;
      [[maybe_unused]] const auto size = ::read(eventfd_.get(), &wake_ups, sizeof wake_ups);
    }
    waiter_.disarm();
  }

  [[nodiscard]] bool is_published() const {
    return published_.load(std::memory_order_acquire) != taken_.load(std::memory_order_relaxed);
  }
  bool is_there() {
    if (!is_published()) return false;
    taken_.store(published_.load(std::memory_order_relaxed), std::memory_order_release);
    return true;
  }

  kernels::Doorbell word_{};
  core::Fd eventfd_ = make_eventfd();
  Waiter waiter_{word_, eventfd_.get()};
  Ringer ringer_{word_, eventfd_.get()};
  alignas(128) std::atomic<std::uint32_t> published_{0};
  alignas(128) std::atomic<std::uint32_t> taken_{0};
  std::atomic<bool> ended_{false};
  std::atomic<std::uint32_t> sleeps_{0};
  std::uint32_t lost_ = 0;
};

TEST(DoorbellRace, NoWakeUpIsLost) {
  Race race;
  race.run(200'000, 2s);
  EXPECT_EQ(race.lost(), 0U);
  EXPECT_GT(race.sleeps(), 0U);  // how many there are is up to the machine
  RecordProperty("numbers", static_cast<int>(race.taken()));
  RecordProperty("sleeps", static_cast<int>(race.sleeps()));
}

}  // namespace
}  // namespace offload::progress
