#include "kernels/packets/semaphore.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <thread>
#include <vector>

#include "kernels/group.hpp"

namespace offload::kernels::packets {
namespace {

constexpr WaitLimit kLong{20'000'000'000};

struct Item {
  std::uint64_t number;
  std::uint64_t square;
};

struct Items {
  explicit Items(std::uint32_t count) : statuses(count), items(count * sizeof(Item)) {}
  [[nodiscard]] Semaphore view() {
    return {statuses.data(), items.data(), sizeof(Item),
            static_cast<std::uint32_t>(std::countr_zero(statuses.size()))};
  }
  std::vector<Semaphore::Status> statuses;
  std::vector<std::uint8_t> items;
};

void give(const Semaphore& to, std::uint64_t index) {
  ItemStatus status{};
  ASSERT_EQ(wait_for_item(SingleLane{}, to, index, false, kLong, status), WorkResult::done);
  const Item item{index, index * index};
  std::memcpy(to.item(index), &item, sizeof item);
  set_status(SingleLane{}, to, index, index % 7 == 3 ? ItemStatus::error : ItemStatus::ready);
}

void take(const Semaphore& from, std::uint64_t index) {
  ItemStatus status{};
  ASSERT_EQ(wait_for_item(SingleLane{}, from, index, true, kLong, status), WorkResult::done);
  ASSERT_EQ(status, index % 7 == 3 ? ItemStatus::error : ItemStatus::ready);
  Item item{};
  std::memcpy(&item, from.item(index), sizeof item);
  ASSERT_EQ(item.number, index);
  ASSERT_EQ(item.square, index * index);
  set_status(SingleLane{}, from, index, ItemStatus::free);
}

TEST(Semaphore, HandsItemsOver) {
  Items items(4);
  const Semaphore semaphore = items.view();
  const std::jthread giver([&] {
    for (std::uint64_t i = 0; i < 20'000; ++i) give(semaphore, i);
  });
  for (std::uint64_t i = 0; i < 20'000; ++i) take(semaphore, i);
}

/// Each side hands over items as soon as the other side has answered: both directions.
TEST(Semaphore, HandsItemsBothWays) {
  Items there(2);
  Items back(2);
  const Semaphore out = there.view();
  const Semaphore in = back.view();
  const std::jthread other([&] {
    for (std::uint64_t i = 0; i < 500; ++i) {
      take(out, i);
      give(in, i);
    }
  });
  for (std::uint64_t i = 0; i < 500; ++i) {
    give(out, i);
    take(in, i);
  }
}

TEST(Semaphore, HasAnIndexForEachOfManyGivers) {
  Items items(8);
  const Semaphore semaphore = items.view();
  std::uint64_t counter = 0;
  std::vector<std::jthread> givers;
  for (int i = 0; i < 3; ++i) {
    givers.emplace_back([&] {
      for (int k = 0; k < 2000; ++k) give(semaphore, next_index(SingleLane{}, counter));
    });
  }
  for (std::uint64_t i = 0; i < 6000; ++i) take(semaphore, i);
}

TEST(Semaphore, SaysWhenNothingComes) {
  Items items(2);
  ItemStatus status{};
  EXPECT_EQ(wait_for_item(SingleLane{}, items.view(), 0, true, {1000}, status),
            WorkResult::timed_out);
  EXPECT_EQ(status, ItemStatus::free);
  set_status(SingleLane{}, items.view(), 0, ItemStatus::ready);
  EXPECT_EQ(wait_for_item(SingleLane{}, items.view(), 0, false, {1000}, status),
            WorkResult::timed_out);
  // Nor is it free for the giver of the next lap's item, before this one was taken.
  EXPECT_EQ(status_of(items.view(), 2), ItemStatus::earlier);
  set_status(SingleLane{}, items.view(), 0, ItemStatus::free);
  EXPECT_EQ(status_of(items.view(), 2), ItemStatus::free);
  EXPECT_EQ(status_of(items.view(), 4), ItemStatus::earlier);
}

/// The giver that was not given a place in time goes on with the same index.
TEST(Semaphore, ATimeOutHandsNothingOverAndSkipsNothing) {
  Items items(2);
  const Semaphore semaphore = items.view();
  std::uint64_t next = 0;
  const auto hand_one = [&](const WaitLimit& limit) {
    return hand_over(SingleLane{}, semaphore, next, true, limit, [&](std::uint8_t* to) {
      const Item item{next, next * next};
      std::memcpy(to, &item, sizeof item);
    });
  };
  constexpr WaitLimit kSecond{1'000'000'000};
  ASSERT_EQ(hand_one(kSecond) + hand_one(kSecond), 2U);
  EXPECT_EQ(hand_one({1000}), 0U);
  take(semaphore, 0);
  ASSERT_EQ(hand_one(kSecond), 1U);
  take(semaphore, 1);
  take(semaphore, 2);
  EXPECT_EQ(hand_over(SingleLane{}, semaphore, next, false, kSecond, [](std::uint8_t*) {}), 0U);
  EXPECT_EQ(next, 3U);
}

}  // namespace
}  // namespace offload::kernels::packets
