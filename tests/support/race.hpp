#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <latch>
#include <thread>

#include "core/clock.hpp"
#include "core/cpu.hpp"
#include "tests/support/eventually.hpp"

/// A race of two threads, tried a million times with offsets of some nanoseconds between them.
namespace offload::support::race {

/// Under a sanitizer a round takes twenty times as long, and fewer rounds find the same faults.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr std::uint32_t kRounds = 50'000;
#else
inline constexpr std::uint32_t kRounds = 1'000'000;
#endif

/// Pauses for `spins` instructions of some nanoseconds each. With different periods on the two
/// sides, now one is earlier and now the other: each offset of the two occurs.
inline void pause(std::uint32_t spins) {
  for (std::uint32_t i = 0; i < spins; ++i) core::cpu_relax();
}

/// Waits until `word` is `value`: it polls if the other thread runs, and yields the processor if it
/// does not. The other thread must always reach that value: if not, this ends the test program.
inline void await(const std::atomic<std::uint32_t>& word, std::uint32_t value) {
  constexpr int kLooks = 2000;
  const auto deadline = core::Clock::now() + kBound;
  for (;;) {
    for (int i = 0; i < kLooks; ++i) {
      if (word.load(std::memory_order_acquire) == value) return;  // pairs with the release there
      core::cpu_relax();
    }
    if (core::Clock::now() > deadline) std::abort();
    std::this_thread::yield();
  }
}

/// Runs both, each on a separate processor: on the same one there would be no race.
template <class One, class Other>
void run(One one, Other other) {
  const auto cpus = core::allowed_cpus();
  std::latch pinned(1);  // one after the other: libnuma has a cache
  std::thread first([&] {
    core::pin_this_thread(cpus.back());
    pinned.count_down();
    one();
  });
  std::thread second([&] {
    pinned.wait();
    core::pin_this_thread(cpus.front());
    other();
  });
  first.join();
  second.join();
}

}  // namespace offload::support::race
