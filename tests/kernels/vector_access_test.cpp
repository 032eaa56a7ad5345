#include "kernels/vector_access.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace offload::kernels {
namespace {

using namespace std::chrono_literals;

/// All of whose words follow from its turn.
Vector vector_of(std::uint32_t turn) {
  return {{turn * 3, ~turn, turn * 7}, turn};
}

bool agrees(const Vector& vector) {
  const Vector whole = vector_of(vector.turn);
  return vector.data[0] == whole.data[0] && vector.data[1] == whole.data[1] &&
         vector.data[2] == whole.data[2];
}

TEST(VectorAccess, LoadsWhatWasStoredAndTouchesNothingElse) {
  Vector vectors[3] = {vector_of(1), vector_of(2), vector_of(3)};
  store_vector(vectors + 1, {{0x0102'0304, 0x0506'0708, 0x090a'0b0c}, 0x0d0e'0f10});
  const Vector loaded = load_vector(vectors + 1);
  EXPECT_EQ(loaded.data[0], 0x0102'0304U);
  EXPECT_EQ(loaded.data[1], 0x0506'0708U);
  EXPECT_EQ(loaded.data[2], 0x090a'0b0cU);
  EXPECT_EQ(loaded.turn, 0x0d0e'0f10U);
  EXPECT_EQ(std::memcmp(&vectors[1], &loaded, sizeof loaded), 0);
  EXPECT_TRUE(agrees(vectors[0]) && vectors[0].turn == 1);
  EXPECT_TRUE(agrees(vectors[2]) && vectors[2].turn == 3);
}

// As in a channel: written anew only once its reader is done.
TEST(VectorAccess, ATurnIsNeverSeenBeforeItsData) {
  Vector shared = vector_of(0);
  std::atomic<std::uint32_t> taken{0};
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (std::uint32_t turn = 1; !stop; ++turn) {
      store_vector(&shared, vector_of(turn));
      while (taken != turn && !stop) std::this_thread::yield();
    }
  });
  std::uint32_t wrong = 0;
  const auto end = std::chrono::steady_clock::now() + 1s;
  while (taken < 100'000 && std::chrono::steady_clock::now() < end) {
    const Vector vector = load_vector(&shared);
    if (vector.turn == taken) {
      std::this_thread::yield();  // or the writer may not get to run on a busy machine
      continue;
    }
    if (!agrees(vector)) ++wrong;
    taken = vector.turn;
  }
  stop = true;
  writer.join();
  EXPECT_EQ(wrong, 0U);
  EXPECT_GT(taken, 10U);
}

#if !defined(OFFLOAD_PORTABLE_VECTORS)

// What one aligned 16-byte access gives beyond that.
TEST(VectorAccess, IsNeverTornEvenWhenWrittenWithoutPause) {
  Vector shared = vector_of(0);
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (std::uint32_t turn = 1; !stop.load(std::memory_order_relaxed); ++turn) {
      store_vector(&shared, vector_of(turn));
    }
  });
  std::uint32_t wrong = 0;
  std::uint32_t changes = 0;
  std::uint32_t last = 0;
  const auto end = std::chrono::steady_clock::now() + 300ms;
  while (std::chrono::steady_clock::now() < end) {
    for (int i = 0; i < 1000; ++i) {
      const Vector vector = load_vector(&shared);
      if (!agrees(vector)) ++wrong;
      if (vector.turn != last) ++changes;
      last = vector.turn;
    }
  }
  stop = true;
  writer.join();
  EXPECT_EQ(wrong, 0U);
  EXPECT_GT(changes, 1U);
}

#endif

}  // namespace
}  // namespace offload::kernels
