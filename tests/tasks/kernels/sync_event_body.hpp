#pragma once

#include <gtest/gtest.h>

#include <cstdint>

#include "kernels/rdma/wait.hpp"
#include "kernels/serve.hpp"
#include "kernels/tasks/sync_event.hpp"
#include "tests/kernels/bodies/runner_suite.hpp"

/// A sync event that every lane works on.
namespace offload::kernels::test {

/// The values that the lanes saw.
struct EventLog {
  std::uint64_t before;  ///< sum of the values that their adds returned
  std::uint32_t lanes;
  std::uint32_t waits;  ///< that ended as they should
};

/// Each lane adds 1, and waits until all have; then for a bit that differs, and for one that never
/// does.
struct AddToEvent {
  SyncEventWords* event;
  EventLog* log;

  template <class Group>
  OFFLOAD_HOST_DEVICE void operator()(const Group& group, Staging&) const {
    const std::uint64_t before = sync_event_add(*event, 1);
    rdma::Wait wait({20'000'000'000});
    const auto give_up = [&] { return wait.is_over(); };
    const auto at_once = [] { return true; };
    const bool right = sync_event_wait_greater(*event, group.size() - 1, give_up) &&
                       sync_event_wait_not_equal(*event, 0, ~0ULL, at_once) &&
                       !sync_event_wait_not_equal(*event, 0, 1ULL << 40, at_once);
    add<std::uint64_t>(log->before, before);
    add<std::uint32_t>(log->lanes, 1);
    add<std::uint32_t>(log->waits, right ? 1 : 0);
  }

 private:
  template <class Word>
  OFFLOAD_HOST_DEVICE static void add(Word& word, Word count) {
#if defined(__CUDA_ARCH__)
    if constexpr (sizeof(Word) == 8) {
      atomicAdd(reinterpret_cast<unsigned long long*>(&word), count);
    } else {
      atomicAdd(&word, count);
    }
#else
    __atomic_fetch_add(&word, count, __ATOMIC_RELAXED);
#endif
  }
};

template <class Runner>
class SyncEvents : public RunnerSuite<Runner> {};
TYPED_TEST_SUITE_P(SyncEvents);

TYPED_TEST_P(SyncEvents, AddsAllCountAndWaitsSeeThem) {
  typename TypeParam::Memory memory(sizeof(SyncEventWords) + sizeof(EventLog));
  auto* const event = reinterpret_cast<SyncEventWords*>(memory.data());
  auto* const log = reinterpret_cast<EventLog*>(event + 1);
  TypeParam::run(AddToEvent{event, log});
  const std::uint64_t lanes = log->lanes;
  ASSERT_GT(lanes, 0U);
  EXPECT_EQ(event->value, lanes);
  EXPECT_EQ(log->before, lanes * (lanes - 1) / 2);  // each add returned another value
  EXPECT_EQ(log->waits, lanes);
}

REGISTER_TYPED_TEST_SUITE_P(SyncEvents, AddsAllCountAndWaitsSeeThem);

}  // namespace offload::kernels::test
