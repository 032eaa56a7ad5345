#include "memory/region.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <latch>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "tests/support/eventually.hpp"
#include "tests/support/log_capture.hpp"
#include "tests/support/memory.hpp"

namespace offload::memory {
namespace {

using core::ErrorCode;
using support::thrown_by;

static_assert(!std::is_move_constructible_v<MemoryRegion>);

TEST(MemoryRegion, ALife) {
  MemoryRegion region({"x", kLocalAccess});
  EXPECT_EQ(region.name(), "x");
  EXPECT_EQ(region.access(), kLocalAccess);
  EXPECT_FALSE(region.started());
  EXPECT_EQ(region.add_range(allocate_range(kPage)), 0U);
  EXPECT_EQ(region.add_range(allocate_range(kPage)), 1U);
  region.start();
  EXPECT_TRUE(region.started());
  EXPECT_EQ(region.ranges().size(), 2U);
  region.stop();
  EXPECT_FALSE(region.started());
  // A second start has more ranges.
  EXPECT_EQ(region.add_range(allocate_range(kPage)), 2U);
  region.start();
  EXPECT_TRUE(region.started());
}

TEST(MemoryRegion, CallsInTheWrongStateNameObjectAndState) {
  MemoryRegion region({"x"}, {allocate_range(kPage)});
  FakeRegistrar registrar("card");
  const auto expect = [](const core::Error& error, const char* text) {
    EXPECT_EQ(error.code(), ErrorCode::bad_state);
    EXPECT_STREQ(error.what(), text);
  };
  expect(thrown_by([&] { region.stop(); }), "memory region 'x' is stopped: cannot stop");
  expect(thrown_by([&] { region.require_started("be used"); }),
         "memory region 'x' is stopped: cannot be used");
  region.start();
  expect(thrown_by([&] { region.start(); }), "memory region 'x' is started: cannot start");
  expect(thrown_by([&] { region.add_range(allocate_range(1)); }),
         "memory region 'x' is started: cannot add a range");
  expect(thrown_by([&] { region.add_registrar(registrar); }),
         "memory region 'x' is started: cannot add a registrar");
  EXPECT_NO_THROW(region.require_started("be used"));
  EXPECT_EQ(region.ranges().size(), 1U);
}

TEST(MemoryRegion, OfNothingDoesNotStart) {
  MemoryRegion region({"x"});
  EXPECT_EQ(code_of([&] { region.start(); }), ErrorCode::invalid_value);
  EXPECT_FALSE(region.started());
}

TEST(MemoryRegion, AccessIsChecked) {
  EXPECT_EQ(code_of([] { MemoryRegion({"x", Access::remote_write}); }), ErrorCode::invalid_value);
}

TEST(MemoryRegion, RefusesARangeThatCannotBeWritten) {
  const std::vector<std::byte> memory(10);
  MemoryRegion writable({"x"});
  EXPECT_EQ(code_of([&] { writable.add_range(borrow_read_only_range(memory)); }),
            ErrorCode::not_permitted);
  MemoryRegion readable({"x", Access::local_read}, {borrow_read_only_range(memory)});
  readable.start();
  EXPECT_TRUE(readable.started());
}

TEST(MemoryRegion, RefusesRangesThatOverlapOrAreEmpty) {
  std::vector<std::byte> memory(100);
  const std::span<std::byte> bytes(memory);
  MemoryRegion region({"x"}, {borrow_range(bytes.subspan(40, 20))});
  for (const auto piece : {bytes.subspan(40, 20), bytes.subspan(59, 1), bytes.first(41), bytes,
                           bytes.subspan(45, 5), bytes.subspan(59)}) {
    EXPECT_EQ(code_of([&] { region.add_range(borrow_range(piece)); }), ErrorCode::invalid_value)
        << piece.data() - bytes.data() << ' ' << piece.size();
  }
  EXPECT_NO_THROW(region.add_range(borrow_range(bytes.first(40))));
  EXPECT_NO_THROW(region.add_range(borrow_range(bytes.subspan(60))));
  EXPECT_EQ(code_of([&] { region.add_range({}); }), ErrorCode::invalid_value);
  EXPECT_EQ(region.ranges().size(), 3U);
}

TEST(MemoryRegion, HasALimitOfRanges) {
  std::vector<std::byte> memory(kMaxRanges + 1);
  MemoryRegion region({"x"});
  for (std::size_t i = 0; i < kMaxRanges; ++i) region.add_range(borrow_range({&memory[i], 1}));
  EXPECT_EQ(code_of([&] {
              region.add_range(borrow_range({&memory[kMaxRanges], 1}));
            }),
            ErrorCode::full);
}

TEST(MemoryRegion, FindsTheRangeThatHoldsAPiece) {
  std::vector<std::byte> memory(100);
  std::byte* const base = memory.data();
  const MemoryRegion region({"x"}, {borrow_range({base + 50, 20}), borrow_range({base + 10, 20})});
  EXPECT_EQ(region.find(base + 50, 20), 0U);
  EXPECT_EQ(region.find(base + 69, 1), 0U);
  EXPECT_EQ(region.find(base + 10, 0), 1U);
  EXPECT_EQ(region.find(base + 30, 0), 1U);  // behind its end, empty
  EXPECT_EQ(region.find(base + 49, 2), std::nullopt);
  EXPECT_EQ(region.find(base + 69, 2), std::nullopt);
  EXPECT_EQ(region.find(base + 31, 0), std::nullopt);
  EXPECT_EQ(region.find(base + 50, kMost), std::nullopt);
  EXPECT_EQ(region.find(base + 60, kMost - 10), std::nullopt);
  EXPECT_EQ(region.find(nullptr, 0), std::nullopt);
}

// No sum of addresses and lengths may wrap around: a range of nearly the whole address space would
// show it.
TEST(MemoryRegion, FindsNothingBeyondTheAddressSpace) {
  const auto at = [](std::size_t address) {
    return reinterpret_cast<std::byte*>(address);  // NOLINT(performance-no-int-to-ptr)
  };
  const MemoryRegion region({"x"}, {foreign_range(at(16), kMost - 100, Location::device, nullptr)});
  EXPECT_EQ(region.find(at(16), kMost - 100), 0U);
  EXPECT_EQ(region.find(at(kMost - 84), 0), 0U);
  EXPECT_EQ(region.find(at(kMost - 50), 60), std::nullopt);
  EXPECT_EQ(region.find(at(kMost - 85), kMost - 100), std::nullopt);
  EXPECT_EQ(region.find(at(15), 1), std::nullopt);
}

TEST(MemoryRegion, RegistersEveryRangeWithEveryRegistrar) {
  FakeRegistrar a("a", 100);
  FakeRegistrar b("b", 200);
  const FakeRegistrar stranger("stranger");
  const Access access = kLocalAccess | kRemoteAccess;
  MemoryRegion region({"x", access}, {allocate_range(kPage), allocate_range(kPage)});
  region.add_registrar(a);
  region.add_registrar(b);
  EXPECT_EQ(region.key(a, 0), nullptr);
  region.start();
  EXPECT_EQ(a.count(), 2U);
  EXPECT_EQ(b.count(), 2U);
  EXPECT_EQ(a.last_access, access);
  ASSERT_NE(region.key(a, 0), nullptr);
  EXPECT_EQ(region.key(a, 0)->local, 100U);
  EXPECT_EQ(region.key(a, 1)->local, 101U);
  EXPECT_EQ(region.key(b, 0)->local, 200U);
  EXPECT_EQ(region.key(b, 1)->remote, 1201U);
  EXPECT_EQ(region.key(b, 2), nullptr);
  EXPECT_EQ(region.key(stranger, 0), nullptr);
  region.stop();
  EXPECT_EQ(region.key(a, 0), nullptr);
  EXPECT_EQ(a.count() + b.count(), 0U);
  EXPECT_TRUE(a.order_is_reversed && b.order_is_reversed);
}

TEST(MemoryRegion, ItsOnlyKeyIsThatOfItsOnlyRange) {
  FakeRegistrar registrar("card", 100);
  MemoryRegion region({"x"}, {allocate_range(kPage)});
  region.add_registrar(registrar);
  for (std::uint32_t i = 0; i < 2; ++i) {
    EXPECT_EQ(region.key(registrar, 0), nullptr);
    region.start();
    ASSERT_NE(region.key(registrar, 0), nullptr);
    EXPECT_EQ(region.key(registrar, 0)->local, 100 + i);
    EXPECT_EQ(region.key(registrar, 1), nullptr);
    EXPECT_EQ(region.key(registrar, 2), nullptr);
    region.stop();
  }
}

TEST(MemoryRegion, TakesARegistrarOnce) {
  FakeRegistrar registrar("card");
  MemoryRegion region({"x"});
  region.add_registrar(registrar);
  EXPECT_EQ(code_of([&] { region.add_registrar(registrar); }), ErrorCode::already_exists);
}

TEST(MemoryRegion, ARegistrarMayBeRemoved) {
  FakeRegistrar a("a", 100);
  FakeRegistrar b("b", 200);
  MemoryRegion region({"x"}, {allocate_range(kPage)});
  region.add_registrar(a);
  region.add_registrar(b);
  region.start();
  EXPECT_EQ(code_of([&] { region.remove_registrar(a); }), ErrorCode::bad_state);
  region.stop();
  region.remove_registrar(a);
  EXPECT_EQ(code_of([&] { region.remove_registrar(a); }), ErrorCode::not_found);
  region.start();
  EXPECT_EQ(a.count(), 0U);
  EXPECT_EQ(region.key(a, 0), nullptr);
  ASSERT_NE(region.key(b, 0), nullptr);
  region.stop();
  region.add_registrar(a);
  region.start();
  EXPECT_NE(region.key(a, 0), nullptr);
  region.stop();
}

TEST(MemoryRegion, AFailedStartLeavesNothingRegistered) {
  for (const std::size_t capacity : {0U, 1U, 2U}) {
    FakeRegistrar a("a");
    FakeRegistrar b("b");
    b.capacity = capacity;
    MemoryRegion region({"x"},
                        {allocate_range(kPage), allocate_range(kPage), allocate_range(kPage)});
    region.add_registrar(a);
    region.add_registrar(b);
    const auto error = thrown_by([&] { region.start(); });
    EXPECT_EQ(error.code(), ErrorCode::driver);
    EXPECT_EQ(error.what(), "memory region 'x': b does not register range " +
                                std::to_string(capacity) + ": no room");
    EXPECT_EQ(error.cause().vendor, 6U);
    EXPECT_FALSE(region.started());
    EXPECT_EQ(a.count() + b.count(), 0U);
    EXPECT_TRUE(a.order_is_reversed && b.order_is_reversed);
    b.capacity = 10;
    region.start();
    EXPECT_EQ(b.count(), 3U);
  }
}

TEST(MemoryRegion, IsNotStoppedWhileItHasUsers) {
  FakeRegistrar registrar("card");
  MemoryRegion region({"x"}, {allocate_range(kPage)});
  region.add_registrar(registrar);
  region.start();
  region.add_user();
  region.add_user();
  const auto error = thrown_by([&] { region.stop(); });
  EXPECT_EQ(error.code(), ErrorCode::in_use);
  EXPECT_STREQ(error.what(),
               "memory region 'x' cannot stop: 2 of its buffers, pools or arrays are in use");
  EXPECT_TRUE(region.started());
  EXPECT_EQ(registrar.count(), 1U);
  region.remove_user();
  EXPECT_EQ(code_of([&] { region.stop(); }), ErrorCode::in_use);
  region.remove_user();
  region.stop();
  EXPECT_FALSE(region.started());
}

TEST(MemoryRegion, EndsWithItsRegistrationsAndSaysWhoWasLeftBehind) {
  const support::LogCapture log;
  FakeRegistrar registrar("card");
  {
    MemoryRegion region({"x"}, {allocate_range(kPage)});
    region.add_registrar(registrar);
    region.start();
  }
  EXPECT_EQ(registrar.count(), 0U);
  EXPECT_FALSE(log.has("error:"));
  {
    MemoryRegion region({"x"}, {allocate_range(kPage)});
    region.start();
    region.add_user();
  }
  EXPECT_TRUE(log.has("error: memory region 'x' ends while 1 of its buffers")) << log.text();
}

}  // namespace
}  // namespace offload::memory
