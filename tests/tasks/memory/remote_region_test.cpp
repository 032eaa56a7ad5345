#include "tasks/memory/remote_region.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <utility>

#include "memory/region_export.hpp"
#include "tasks/memory/inventory.hpp"
#include "tests/support/memory.hpp"

namespace offload::memory {
namespace {

using core::ErrorCode;
using support::thrown_by;

constexpr auto kMost = std::numeric_limits<std::uint64_t>::max();

/// Returns two ranges side by side, with different keys, and one at the end of the address space.
RemoteRegion region() {
  return {Access::remote_read, {{1000, 100, 7}, {1100, 50, 8}, {kMost - 10, 10, 9}}};
}

TEST(RemoteRegion, FindsTheRangeThatHoldsAllOfAPiece) {
  const RemoteRegion remote = region();
  EXPECT_EQ(remote.access(), Access::remote_read);
  EXPECT_EQ(remote.find(1000, 100), &remote.ranges()[0]);
  EXPECT_EQ(remote.find(1099, 1), &remote.ranges()[0]);
  EXPECT_EQ(remote.find(1100, 50), &remote.ranges()[1]);
  EXPECT_EQ(remote.find(kMost - 1, 1), &remote.ranges()[2]);
  EXPECT_EQ(remote.find(1099, 2), nullptr);  // in two ranges
  EXPECT_EQ(remote.find(999, 1), nullptr);
  EXPECT_EQ(remote.find(1000, kMost), nullptr);
  EXPECT_EQ(remote.find(kMost - 5, 6), nullptr);
  EXPECT_EQ(remote.find(kMost, kMost), nullptr);
}

TEST(RemoteBuffer, IsAPartOfARangeWithItsKeyAndAccess) {
  const auto buffer = RemoteBuffer::of(region(), 1010, 20);
  ASSERT_TRUE(buffer);
  EXPECT_EQ(buffer->address(), 1010U);
  EXPECT_EQ(buffer->length(), 20U);
  EXPECT_EQ(buffer->key(), 7U);
  EXPECT_EQ(buffer->access(), Access::remote_read);
  EXPECT_EQ(RemoteBuffer::of(region(), 1100, 50)->key(), 8U);
  EXPECT_EQ(RemoteBuffer::of(region(), kMost - 10, 10)->key(), 9U);
}

TEST(RemoteBuffer, WhatIsNotWhollyInOneRangeIsNone) {
  using Part = std::pair<std::uint64_t, std::uint64_t>;
  for (const auto& [address, length] :
       {Part{999, 1}, Part{999, 2}, Part{1000, 101}, Part{1099, 2}, Part{1150, 1}, Part{0, kMost},
        Part{1001, kMost}, Part{kMost - 5, 6}, Part{kMost, 1}, Part{1000, 0}, Part{1150, 0}}) {
    EXPECT_FALSE(RemoteBuffer::of(region(), address, length)) << address << ", " << length;
  }
  EXPECT_FALSE(RemoteBuffer::of(RemoteRegion(Access::remote_read, {}), 0, 1));
}

TEST(RemoteBuffer, ASliceStaysInside) {
  const auto buffer = *RemoteBuffer::of(region(), 1010, 20);
  EXPECT_EQ(buffer.slice(0, 20), buffer);
  EXPECT_EQ(buffer.slice(5, 15), RemoteBuffer::of(region(), 1015, 15));
  EXPECT_EQ(buffer.slice(19, 1)->slice(0, 1), RemoteBuffer::of(region(), 1029, 1));
  // The range continues, the buffer does not.
  EXPECT_FALSE(buffer.slice(0, 21));
  EXPECT_FALSE(buffer.slice(20, 1));
  EXPECT_FALSE(buffer.slice(21, 0));
  EXPECT_FALSE(buffer.slice(5, 0));
  EXPECT_FALSE(buffer.slice(1, kMost));
  EXPECT_FALSE(buffer.slice(kMost, 1));
  EXPECT_FALSE(buffer.slice(kMost, kMost));
}

// A slice of a slice is what the sum of the offsets says, or there is none.
TEST(RemoteBuffer, SlicesOfSlicesAgreeWithTheRegion) {
  std::minstd_rand random(3);
  const auto whole = *RemoteBuffer::of(region(), 1000, 100);
  for (int i = 0; i < 10'000; ++i) {
    const std::uint64_t outer = random() % 110;
    const std::uint64_t outer_length = random() % 110;
    const std::uint64_t inner = random() % 110;
    const std::uint64_t inner_length = random() % 110;
    const auto part = whole.slice(outer, outer_length);
    const bool outer_fits = outer_length != 0 && outer + outer_length <= 100;
    ASSERT_EQ(part.has_value(), outer_fits);
    if (!part) continue;
    const auto of_part = part->slice(inner, inner_length);
    ASSERT_EQ(of_part.has_value(), inner_length != 0 && inner + inner_length <= outer_length);
    if (of_part) {
      ASSERT_EQ(of_part, RemoteBuffer::of(region(), 1000 + outer + inner, inner_length));
    }
  }
}

TEST(RegionExport, NeedsARegionThatIsStartedForAPeerToo) {
  FakeRegistrar registrar("card");
  MemoryRegion region({"x", kLocalAccess | kRemoteAccess}, {share_range("a", kPage)});
  region.add_registrar(registrar);
  EXPECT_EQ(code_of([&] { export_remote(region, registrar, Access::remote_read); }),
            ErrorCode::bad_state);
}

TEST(RegionExport, ToldToAPeerAsAddressLengthAndKey) {
  FakeRegistrar registrar("card", 7);
  MemoryRegion region({"x", kLocalAccess | kRemoteAccess},
                      {allocate_range(2 * kPage), allocate_range(kPage)});
  region.add_registrar(registrar);
  region.start();
  const auto remote =
      import_remote(export_remote(region, registrar, Access::remote_read | Access::remote_write));
  EXPECT_EQ(remote.access(), Access::remote_read | Access::remote_write);
  ASSERT_EQ(remote.ranges().size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    const Range& range = region.ranges()[i];
    const auto address = reinterpret_cast<std::uint64_t>(range.address);
    EXPECT_EQ(remote.ranges()[i],
              (RemoteRange{address, range.length, region.key(registrar, i)->remote}));
    EXPECT_EQ(remote.find(address + 1, range.length - 1), &remote.ranges()[i]);
    EXPECT_EQ(remote.find(address + 1, range.length), nullptr);
    EXPECT_EQ(remote.find(address, std::numeric_limits<std::uint64_t>::max()), nullptr);
    EXPECT_EQ(remote.find(address, range.length + 2 * kPage), nullptr);
  }
}

TEST(RegionExport, ToldToAPeerOnlyAsAllowed) {
  FakeRegistrar registrar("card");
  const FakeRegistrar stranger("other");
  MemoryRegion region({"x", kLocalAccess | Access::remote_read}, {allocate_range(kPage)});
  region.add_registrar(registrar);
  region.start();
  EXPECT_EQ(code_of([&] { export_remote(region, registrar, Access::remote_write); }),
            ErrorCode::not_permitted);
  for (const Access access : {Access::none, Access::local_read | Access::remote_read}) {
    EXPECT_EQ(code_of([&] { export_remote(region, registrar, access); }), ErrorCode::invalid_value);
  }
  const auto error = thrown_by([&] { export_remote(region, stranger, Access::remote_read); });
  EXPECT_EQ(error.code(), ErrorCode::not_found);
  EXPECT_STREQ(error.what(), "memory region 'x' is not registered with other");
}

TEST(RegionExport, IsForOneAudience) {
  FakeRegistrar registrar("card");
  MemoryRegion region({"x", kLocalAccess | kRemoteAccess}, {share_range("a", kPage)});
  region.add_registrar(registrar);
  region.start();
  const auto for_peer = export_remote(region, registrar, Access::remote_read);
  EXPECT_EQ(code_of([&] { import_region("copy", for_peer, {}); }), ErrorCode::bad_message);
  const auto for_process = export_region(region, kLocalAccess);
  EXPECT_EQ(code_of([&] { import_remote(for_process.blob); }), ErrorCode::bad_message);
}

TEST(PeerRanges, BuffersOfThemAreTheRemoteSideAndNoLocalOne) {
  MemoryRegion peer({"peer", kLocalAccess | Access::remote_read}, peer_ranges(region()));
  FakeRegistrar registrar("card");
  peer.start();  // without touching the memory
  BufferInventory inventory(1);
  inventory.start();
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an address of a peer
  const Taken taken = inventory.take(peer, {reinterpret_cast<std::byte*>(1110), 10});
  ASSERT_TRUE(taken.buffer);
  EXPECT_EQ(remote_range_of(*taken.buffer), (RemoteRange{1100, 50, 8}));
  EXPECT_FALSE(taken.buffer->all_in_host());
  EXPECT_EQ(peer.key(registrar, 0), nullptr);
  MemoryRegion registered({"peer"}, peer_ranges(region()));
  registered.add_registrar(registrar);
  EXPECT_EQ(thrown_by([&] { registered.start(); }).code(), ErrorCode::not_supported);
}

}  // namespace
}  // namespace offload::memory
