#include "memory/range.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/magic.h>
#include <numaif.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "memory/region_blob.hpp"
#include "memory/region_export.hpp"
#include "tests/support/memory.hpp"

namespace offload::memory {
namespace {

using core::ErrorCode;

/// The result of fstatfs(2) in this program.
bool everything_is_a_dma_buf = false;

TEST(Range, AllocatedIsOfWholePagesAndZero) {
  for (const std::size_t length : {std::size_t{1}, kPage, kPage + 1}) {
    const Range range = allocate_range(length);
    EXPECT_EQ(range.length, (length + kPage - 1) / kPage * kPage);
    EXPECT_EQ(range.page_size, kPage);
    EXPECT_EQ(range.location, Location::host);
    EXPECT_TRUE(range.writable);
    EXPECT_EQ(range.descriptor.kind, DescriptorKind::none);
    EXPECT_TRUE(std::all_of(range.address, range.address + range.length,
                            [](std::byte byte) { return byte == std::byte{0}; }));
  }
}

TEST(Range, AllocatedGoesWithItsLastCopy) {
  const std::byte* address = nullptr;
  {
    Range copy;
    {
      const Range range = allocate_range(1);
      address = range.address;
      copy = range;
    }
    EXPECT_TRUE(is_mapped(address));
    std::memset(copy.address, 1, copy.length);
  }
  EXPECT_FALSE(is_mapped(address));
}

/// Returns the policy of NUMA nodes that the kernel has for an address, numa(7).
int policy_of(const Range& range) {
  int policy = -1;
  EXPECT_EQ(::get_mempolicy(&policy, nullptr, 0, range.address, MPOL_F_ADDR), 0);
  return policy;
}

TEST(Range, IsBoundToItsNodeIfItHasOne) {
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(policy_of(allocate_range(kPage, 0)), MPOL_BIND);
    EXPECT_EQ(policy_of(share_range("test", kPage, 0)), MPOL_BIND);
    EXPECT_EQ(policy_of(allocate_range(kPage)), MPOL_DEFAULT);
    EXPECT_EQ(policy_of(share_range("test", kPage)), MPOL_DEFAULT);
  }
}

TEST(Range, AllocatedOnANode) {
  const Range range = allocate_range(kPage, 0);
  std::memset(range.address, 1, range.length);
  EXPECT_EQ(code_of([] { allocate_range(kPage, 1 << 20); }), ErrorCode::invalid_value);
}

// The machine decides whether there are huge pages; page_size gives the result either way.
TEST(Range, AllocatedOfHugePagesOrOfPlainOnes) {
  const Range range = allocate_range(1, -1, Pages::huge);
  EXPECT_TRUE(range.page_size == kPage || range.page_size == std::size_t{2} << 20);
  std::ifstream file("/proc/meminfo");
  const std::string lines{std::istreambuf_iterator<char>(file), {}};
  if (lines.find("HugePages_Total:       0\n") != std::string::npos) {
    EXPECT_EQ(range.page_size, kPage);
  }
  EXPECT_EQ(range.length, range.page_size);
  std::memset(range.address, 1, range.length);
}

TEST(Range, AllocatedOfNothingAndOfTooMuch) {
  const core::Error error = support::thrown_by([] { allocate_range(0); });
  EXPECT_EQ(error.code(), ErrorCode::invalid_value);
  EXPECT_STREQ(error.what(), "the range of memory is empty");
  for (const std::size_t length : {kMost, kMost - kPage, std::size_t{1} << 62}) {
    EXPECT_EQ(code_of([&] { allocate_range(length); }), ErrorCode::no_memory);
    EXPECT_EQ(code_of([&] { allocate_range(length, -1, Pages::huge); }), ErrorCode::no_memory);
  }
}

TEST(Range, BorrowedIsTheCallersMemory) {
  std::vector<std::byte> memory(100);
  const Range range = borrow_range(memory);
  EXPECT_EQ(range.address, memory.data());
  EXPECT_EQ(range.length, 100U);
  EXPECT_TRUE(range.writable);
  EXPECT_FALSE(borrow_read_only_range(memory).writable);
  EXPECT_EQ(code_of([] { borrow_range({}); }), ErrorCode::invalid_value);
  EXPECT_EQ(code_of([] { borrow_read_only_range({}); }), ErrorCode::invalid_value);
}

TEST(Range, SharedIsSeenByWhoImportsIt) {
  const Range range = share_range("test", kPage + 1);
  EXPECT_EQ(range.length, 2 * kPage);
  EXPECT_EQ(range.page_size, kPage);
  EXPECT_EQ(range.location, Location::shared);
  EXPECT_EQ(range.descriptor.kind, DescriptorKind::memfd);
  const Range other = import_shared_range(duplicate(range.descriptor.fd), range.length, true);
  const Range reader = import_shared_range(duplicate(range.descriptor.fd), range.length, false);
  EXPECT_TRUE(other.writable);
  EXPECT_FALSE(reader.writable);
  other.address[kPage] = std::byte{5};
  EXPECT_EQ(range.address[kPage], std::byte{5});
  EXPECT_EQ(reader.address[kPage], std::byte{5});
}

TEST(Range, SharedOfNothingOrOnNoNode) {
  const core::Error error = support::thrown_by([] { share_range("test", 0); });
  EXPECT_EQ(error.code(), ErrorCode::invalid_value);
  EXPECT_STREQ(error.what(), "the range of memory is empty");
  EXPECT_EQ(share_range("test", 1).length, kPage);
  EXPECT_EQ(code_of([] { share_range("test", 1, 1 << 20); }), ErrorCode::invalid_value);
}

TEST(Range, ImportRefusesWhatSharedMemoryRefuses) {
  EXPECT_EQ(code_of([&] { import_shared_range(memfd(kPage, 0), kPage, false); }),
            ErrorCode::invalid_value);
  const Range range = share_range("test", kPage);
  EXPECT_EQ(code_of([&] { import_shared_range(duplicate(range.descriptor.fd), kPage + 1, true); }),
            ErrorCode::invalid_value);
}

// A file could be cut off under its mapping. (Few machines of tests can make a dma-buf.)
TEST(Range, ADmaBufIsNothingElse) {
  const Range range = share_range("test", kPage);
  EXPECT_EQ(code_of([&] { map_dma_buf_range(duplicate(range.descriptor.fd), 0, kPage, true); }),
            ErrorCode::invalid_value);
  EXPECT_EQ(code_of([&] { map_dma_buf_range(core::Fd(::eventfd(0, EFD_CLOEXEC)), 0, 1, true); }),
            ErrorCode::invalid_value);
  EXPECT_THROW(map_dma_buf_range(core::Fd(), 0, kPage, true), core::Error);
}

// The kernel reports the memfd as a dma-buf (below), as this machine may be unable to make one.
TEST(Range, ADmaBufIsMappedWithinItsLength) {
  everything_is_a_dma_buf = true;
  const auto map = [](std::uint64_t offset, std::size_t length) {
    return map_dma_buf_range(memfd(3 * kPage, 0), offset, length, true);
  };
  EXPECT_EQ(map(0, 3 * kPage).length, 3 * kPage);
  const Range rear = map_dma_buf_range(memfd(3 * kPage, 0), kPage, 2 * kPage, true);
  EXPECT_EQ(rear.descriptor.offset, kPage);
  EXPECT_EQ(rear.length, 2 * kPage);
  EXPECT_EQ(rear.location, Location::shared);
  EXPECT_TRUE(rear.writable);
  EXPECT_FALSE(map_dma_buf_range(memfd(kPage, 0), 0, kPage, false).writable);
  std::memcpy(rear.address, "rear", 4);
  std::array<char, 4> there{};
  EXPECT_EQ(::pread(rear.descriptor.fd, there.data(), there.size(), static_cast<off_t>(kPage)), 4);
  EXPECT_EQ(std::string_view(there.data(), there.size()), "rear");
  EXPECT_EQ(code_of([&] { map(kPage, 2 * kPage + 1); }), ErrorCode::invalid_value);
  EXPECT_EQ(code_of([&] { map(kPage, 3 * kPage); }), ErrorCode::invalid_value);
  EXPECT_EQ(code_of([&] { map(3 * kPage, 1); }), ErrorCode::invalid_value);
  EXPECT_EQ(code_of([&] { map(4 * kPage, kPage); }), ErrorCode::invalid_value);
  EXPECT_EQ(code_of([&] { map(kPage, ~std::size_t{0}); }), ErrorCode::invalid_value);
  everything_is_a_dma_buf = false;
}

TEST(Range, ADmaBufThatNobodyMapsHasAddressesAlone) {
  everything_is_a_dma_buf = true;
  {
    const Range range = reserve_dma_buf_range(memfd(3 * kPage, 0), kPage, 2 * kPage, false);
    EXPECT_EQ(range.location, Location::device);
    EXPECT_EQ(range.length, 2 * kPage);
    EXPECT_FALSE(range.writable);
    EXPECT_EQ(range.descriptor.kind, DescriptorKind::dma_buf);
    EXPECT_EQ(range.descriptor.offset, kPage);
    EXPECT_NE(::fcntl(range.descriptor.fd, F_GETFD), -1);
    EXPECT_TRUE(is_mapped(range.address + kPage));
  }
  EXPECT_EQ(code_of([] { reserve_dma_buf_range(memfd(kPage, 0), 1, kPage, true); }),
            ErrorCode::invalid_value);
  everything_is_a_dma_buf = false;
  EXPECT_EQ(code_of([] { reserve_dma_buf_range(memfd(kPage, 0), 0, kPage, true); }),
            ErrorCode::invalid_value);
}

TEST(Range, ADmaBufMayBeLongerThanTheAddressSpace) {
  everything_is_a_dma_buf = true;
  constexpr std::size_t kTooMuch = std::size_t{1} << 50;
  EXPECT_EQ(code_of([] { reserve_dma_buf_range(memfd(kTooMuch, 0), 0, kTooMuch, true); }),
            ErrorCode::no_memory);
  EXPECT_EQ(code_of([] { map_dma_buf_range(memfd(kTooMuch, 0), 0, kTooMuch, true); }),
            ErrorCode::not_supported);
  everything_is_a_dma_buf = false;
}

// Its exporter refuses to map it for writing: cards can use it nevertheless.
TEST(Range, ADmaBufThatCannotBeMappedIsImportedForDevices) {
  everything_is_a_dma_buf = true;
  const core::Fd file = memfd(kPage, 0);
  const std::string path = "/proc/self/fd/" + std::to_string(file.get());
  const auto blob =
      RegionBlob{kLocalAccess, std::vector<PassedRange>{{DescriptorKind::dma_buf, 0, kPage}}}
          .encode();
  for (const bool can_be_mapped : {false, true}) {
    std::vector<core::Fd> fds;
    fds.emplace_back(::open(path.c_str(), can_be_mapped ? O_RDWR : O_RDONLY));
    const MemoryRegion region = import_region("x", blob, std::move(fds));
    ASSERT_EQ(region.ranges().size(), 1U);
    EXPECT_EQ(region.ranges()[0].location, can_be_mapped ? Location::shared : Location::device);
  }
  everything_is_a_dma_buf = false;
}

TEST(Range, ItsPlaceSaysWhoReachesIt) {
  for (const auto& [location, host, elsewhere] :
       {std::tuple{Location::host, true, false}, std::tuple{Location::shared, true, false},
        std::tuple{Location::device, false, false}, std::tuple{Location::process, false, true},
        std::tuple{Location::peer, false, true}}) {
    EXPECT_EQ(is_in_host(location), host) << static_cast<int>(location);
    EXPECT_EQ(is_elsewhere(location), elsewhere) << static_cast<int>(location);
  }
}

TEST(Range, ForeignIsAsItWasToldAndKeepsItsOwner) {
  auto memory = std::make_shared<std::vector<std::byte>>(10);
  const std::weak_ptr<void> watch = memory;
  {
    const Range range = foreign_range(memory->data(), 10, Location::device, memory,
                                      {DescriptorKind::dma_buf, 7, kPage});
    memory.reset();
    EXPECT_EQ(range.location, Location::device);
    EXPECT_EQ(range.length, 10U);
    EXPECT_EQ(range.descriptor.fd, 7);
    EXPECT_EQ(range.descriptor.offset, kPage);
    EXPECT_FALSE(watch.expired());
  }
  EXPECT_TRUE(watch.expired());
}

TEST(Range, ItsDescriptorIsChecked) {
  Range range = share_range("test", kPage);
  EXPECT_NO_THROW(check_range(range));
  range.descriptor.offset = kPage;
  EXPECT_EQ(code_of([&] { check_range(range); }), ErrorCode::invalid_value);
  range.descriptor = {DescriptorKind::dma_buf, -1, 0};
  EXPECT_EQ(code_of([&] { check_range(range); }), ErrorCode::invalid_value);
  range.descriptor = {DescriptorKind::dma_buf, 0, kPage};
  EXPECT_NO_THROW(check_range(range));
  range.descriptor = {};
  EXPECT_NO_THROW(check_range(range));
}

TEST(Range, ForeignIsChecked) {
  std::byte memory{};
  const auto make = [](void* address, std::size_t length, Descriptor descriptor = {}) {
    return foreign_range(address, length, Location::host, nullptr, descriptor);
  };
  EXPECT_EQ(code_of([&] { make(nullptr, 1); }), ErrorCode::invalid_value);
  EXPECT_EQ(code_of([&] { make(&memory, 0); }), ErrorCode::invalid_value);
  EXPECT_EQ(code_of([&] { make(&memory, kMost); }), ErrorCode::invalid_value);
  EXPECT_EQ(code_of([&] {
              make(&memory, 1, {DescriptorKind::memfd, 7, 0});
            }),
            ErrorCode::invalid_value);
  const auto address = reinterpret_cast<std::uintptr_t>(&memory);
  EXPECT_NO_THROW(make(&memory, kMost - address + 1));  // up to the last byte there is
  EXPECT_EQ(code_of([&] { make(&memory, kMost - address + 2); }), ErrorCode::invalid_value);
}

}  // namespace
}  // namespace offload::memory

/// Linked before the C library's function.
extern "C" int fstatfs(int fd, struct statfs* status) noexcept {
  const auto result = static_cast<int>(::syscall(SYS_fstatfs, fd, status));
  if (result == 0 && offload::memory::everything_is_a_dma_buf) status->f_type = DMA_BUF_MAGIC;
  return result;
}
