// Sources and destinations that are lists.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "tests/tasks/copy/copy_fixture.hpp"

namespace offload::copy {
namespace {

using core::ErrorCode;
using core::Status;
using memory::BufferRef;
using support::Bytes;
using support::copy_of;

class GatherTest : public MemoryCopyTest {
 protected:
  /// Puts `part` at the end of a list that may still be empty.
  static void link(BufferRef& list, BufferRef part) {
    if (!list) {
      list = std::move(part);
    } else {
      EXPECT_TRUE(list->append_chain(part));
    }
  }
  BufferRef list_of(std::size_t elements, std::size_t length) {
    BufferRef list;
    for (std::size_t i = 0; i < elements; ++i) link(list, source(from(2 * i * length, length)));
    return list;
  }
};

TEST_F(GatherTest, AListIsCopiedInItsOrder) {
  BufferRef list = source(from(20, 5));
  link(list, source(from(0, 7)));
  link(list, source(from(40, 1)));
  const auto target = destination(to(0, 13));
  EXPECT_EQ(submit(list, target), Status());
  engine_.progress();
  EXPECT_EQ(target->data().size(), 13U);
  EXPECT_EQ(copy_of(to(0, 5)), copy_of(from(20, 5)));
  EXPECT_EQ(copy_of(to(5, 7)), copy_of(from(0, 7)));
  EXPECT_EQ(copy_of(to(12, 1)), copy_of(from(40, 1)));
}

TEST_F(GatherTest, AnElementStandsForTheListFromThereOn) {
  BufferRef list = source(from(0, 10));
  const BufferRef second = source(from(20, 10));
  link(list, second);
  link(list, source(from(40, 10)));
  const auto target = destination(to(0, 30));
  EXPECT_EQ(submit(second, target), Status());
  engine_.progress();
  EXPECT_EQ(target->data().size(), 20U);
  EXPECT_EQ(copy_of(to(0, 10)), copy_of(from(20, 10)));
  EXPECT_EQ(copy_of(to(10, 10)), copy_of(from(40, 10)));
}

TEST_F(GatherTest, TheTotalMustFit) {
  EXPECT_EQ(submit(list_of(3, 10), destination(to(0, 29))), ErrorCode::invalid_value);
  EXPECT_EQ(submit(list_of(3, 10), destination(to(0, 30))), Status());
}

TEST_F(GatherTest, AnyElementThatOverlapsIsFound) {
  for (std::size_t overlapping = 0; overlapping < 3; ++overlapping) {
    BufferRef list;
    for (std::size_t i = 0; i < 3; ++i) {
      link(list, source(i == overlapping ? to(5, 10) : from(i * 10, 10)));
    }
    EXPECT_EQ(submit(list, destination(to(0, 30))), ErrorCode::invalid_value) << overlapping;
  }
}

TEST_F(GatherTest, AsManyElementsAsTheContextTakesAndNotOneMore) {
  const std::size_t most = context_.most_elements();
  EXPECT_EQ(submit(list_of(most, 1), destination(to(0, most))), Status());
  EXPECT_EQ(submit(list_of(most + 1, 1), destination(to(most, most + 1))),
            ErrorCode::not_supported);
}

TEST_F(GatherTest, AListIsFilledInItsOrder) {
  BufferRef list = destination(to(100, 10));
  ASSERT_TRUE(list->append(4));  // has room for 6
  const BufferRef full = destination(to(200, 5));
  ASSERT_TRUE(full->append(5));
  link(list, full);
  const BufferRef last = destination(to(300, 20));
  link(list, last);
  EXPECT_EQ(submit(list_of(3, 5), list), Status());
  engine_.progress();
  EXPECT_EQ(ends_.all.at(0).second, Status());
  Bytes expected;
  for (std::size_t i = 0; i < 3; ++i) {
    const auto part = from(10 * i, 5);
    expected.insert(expected.end(), part.begin(), part.end());
  }
  EXPECT_EQ(list->data().size(), 10U);
  EXPECT_EQ(copy_of(to(104, 6)), Bytes(expected.begin(), expected.begin() + 6));
  EXPECT_EQ(full->data().size(), 5U);
  EXPECT_EQ(copy_of(last->data()), Bytes(expected.begin() + 6, expected.end()));
  EXPECT_EQ(copy_of(to(309, 11)), Bytes(11));  // what is not needed stays as it is
}

TEST_F(GatherTest, AListIsADestinationOnlyIfAllOfItCanBe) {
  const auto list_to = [&](std::span<std::byte> first, std::span<std::byte> second) {
    BufferRef list = destination(first);
    link(list, destination(second));
    return list;
  };
  const std::size_t most = context_.most_elements();
  EXPECT_EQ(submit(source(from(0, 21)), list_to(to(0, 10), to(10, 10))), ErrorCode::invalid_value);
  EXPECT_EQ(submit(source(from(0, 20)), list_to(to(0, 10), from(19, 10))),
            ErrorCode::invalid_value);
  EXPECT_EQ(submit(source(from(0, 20)), list_to(to(0, 10), from(20, 10))), Status());
  BufferRef list = destination(to(0, 1));
  for (std::size_t i = 1; i <= most; ++i) link(list, destination(to(i, 1)));
  EXPECT_EQ(submit(source(from(0, 1)), list), ErrorCode::not_supported);
}

TEST_F(GatherTest, AnElementThatChangesMeanwhileIsAnErrorAndNeverAnOverrun) {
  BufferRef list = destination(to(0, kPiece));
  const BufferRef last = destination(to(2 * kPiece, kPiece));
  link(list, last);
  EXPECT_EQ(submit(source(from(0, 2 * kPiece)), list), Status());
  engine_.progress();
  EXPECT_TRUE(ends_.all.empty());
  ASSERT_TRUE(last->append(kPiece - 1));
  engine_.progress();
  EXPECT_EQ(ends_.all.at(0).second, ErrorCode::bad_state);
  EXPECT_EQ(list->data().size(), 0U);
  EXPECT_EQ(copy_of(to(3 * kPiece, 100)), Bytes(100));
}

TEST_F(GatherTest, AStopInTheMiddleOfAListLeavesNothingBehind) {
  EXPECT_EQ(submit(list_of(3, kPiece), destination(to(0, 3 * kPiece))), Status());
  engine_.progress();
  context_.stop();
  context_.start();
  const auto target = destination(to(0, 3));
  EXPECT_EQ(submit(list_of(3, 1), target), Status());
  engine_.progress();
  EXPECT_EQ(copy_of(target->data()), (Bytes{from(0, 1)[0], from(2, 1)[0], from(4, 1)[0]}));
}

class RandomGatherTest : public GatherTest {
 protected:
  static constexpr std::size_t kPlaces = 10;
  static constexpr std::size_t kPlace = kHalf / kPlaces;

  /// A place of the destinations' half, and what is to be in it.
  struct Expected {
    std::size_t place;
    BufferRef target;
    Bytes bytes;
  };

  /// Most are small, some are longer than a turn's work; any may be empty.
  BufferRef random_part() {
    const std::size_t longest = random_() % 200 == 0 ? kPiece + kPiece / 4 : 300;
    const auto room = from(random_() % (kHalf / 2), 1 + random_() % longest);
    auto part = destination(room);
    const std::size_t offset = random_() % (room.size() + 1);
    EXPECT_TRUE(part->set_data(offset, random_() % (room.size() - offset + 1)));
    return part;
  }

  void submit_random(std::size_t place) {
    BufferRef list;
    const std::size_t before = random_() % 50;
    Bytes bytes(before);
    for (std::size_t i = 1 + random_() % context_.most_elements(); i > 0; --i) {
      BufferRef part = random_part();
      bytes.insert(bytes.end(), part->data().begin(), part->data().end());
      link(list, std::move(part));
    }
    const std::size_t room = bytes.size() + 1 + random_() % 50;
    if (room > kPlace) return;
    bytes.resize(kPlace);
    auto target = destination(to(place * kPlace, room));
    ASSERT_TRUE(target->set_data(before / 2, before - before / 2));
    ASSERT_EQ(submit(list, target), Status());
    expected_.push_back({place, std::move(target), std::move(bytes)});
  }

  void expect_and_clear() {
    ASSERT_EQ(ends_.all.size(), expected_.size());
    for (const auto& [ended, status] : ends_.all) {
      EXPECT_EQ(status, Status());
      EXPECT_EQ(pool_->release(*ended), Status());
    }
    for (const Expected& expected : expected_) {
      const auto found = to(expected.place * kPlace, kPlace);
      ASSERT_EQ(std::memcmp(expected.bytes.data(), found.data(), kPlace), 0);
    }
    ends_.all.clear();
    expected_.clear();
    EXPECT_EQ(inventory_.free_count(), inventory_.count());
  }

  std::minstd_rand random_{8};
  std::vector<Expected> expected_;
};

// Each to a place that no other writes; the bytes around every destination stay as they are.
TEST_F(RandomGatherTest, ListsOfAnyShapeAreExact) {
  for (int round = 0; round < 60; ++round) {
    std::ranges::fill(to(0, kHalf), std::byte{0});
    for (std::size_t place = 0; place < kPlaces; ++place) {
      ASSERT_NO_FATAL_FAILURE(submit_random(place)) << "round " << round;
    }
    for (int turns = 0; turns < 100 && context_.in_flight() != 0; ++turns) engine_.progress();
    ASSERT_NO_FATAL_FAILURE(expect_and_clear()) << "round " << round;
  }
}

}  // namespace
}  // namespace offload::copy
