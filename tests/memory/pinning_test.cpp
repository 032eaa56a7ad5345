#include "memory/pinning.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "memory/region.hpp"
#include "tests/support/log_capture.hpp"
#include "tests/support/memory.hpp"

namespace offload::memory {
namespace {

std::size_t resident_pages(const Range& range) {
  std::vector<unsigned char> resident(range.length / kPage);
  EXPECT_EQ(::mincore(range.address, range.length, resident.data()), 0);
  std::size_t count = 0;
  for (const unsigned char page : resident) count += page & 1U;
  return count;
}

TEST(Pinning, StartBringsEveryPageInAndChangesNothing) {
  const Range range = allocate_range(64 * kPage);
  EXPECT_EQ(resident_pages(range), 0U);
  range.address[kPage] = std::byte{7};
  MemoryRegion region({"x"}, {range});
  region.start();
  EXPECT_EQ(resident_pages(range), 64U);
  EXPECT_EQ(range.address[kPage], std::byte{7});
}

// Memory without access rights stands for a GPU's memory.
TEST(Pinning, StartLeavesDeviceMemoryAlone) {
  void* const address = ::mmap(nullptr, kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(address, MAP_FAILED);
  const std::shared_ptr<void> owner(address, [](void* mapped) { ::munmap(mapped, kPage); });
  MemoryRegion region({"x"}, {foreign_range(address, kPage, Location::device, owner)});
  region.start();
  EXPECT_TRUE(region.started());
}

/// Returns "Locked" of /proc/self/smaps, in kB, for the mapping that begins at `address`.
std::size_t locked_kilobytes(const std::byte* address) {
  std::ostringstream begin;
  begin << std::hex << reinterpret_cast<std::uintptr_t>(address) << '-';
  std::ifstream maps("/proc/self/smaps");
  std::string line;
  while (std::getline(maps, line) && !line.starts_with(begin.str())) {
  }
  while (std::getline(maps, line)) {
    if (line.starts_with("Locked:")) return std::stoul(line.substr(line.find(' ')));
  }
  return 0;
}

/// Returns whether mlock works: sanitizers make it do nothing.
bool can_lock() {
  const Range range = allocate_range(kPage);
  return ::mlock(range.address, kPage) == 0 && locked_kilobytes(range.address) != 0;
}

TEST(Pinning, IsLockedInMemoryWhileStarted) {
  if (!can_lock()) GTEST_SKIP() << "nothing can be locked here";
  const Range range = allocate_range(4 * kPage);
  MemoryRegion region({"x"}, {range});
  region.start();
  EXPECT_EQ(locked_kilobytes(range.address), 4 * kPage / 1024);
  region.stop();
  EXPECT_EQ(locked_kilobytes(range.address), 0U);
}

/// Starts a region in a process that may lock nothing and prints the log. Ends the process.
void start_where_nothing_may_be_locked() {
  const struct rlimit none {};
  ::setrlimit(RLIMIT_MEMLOCK, &none);
  constexpr unsigned kNobody = 65534;
  if (::geteuid() == 0 && ::setuid(kNobody) != 0) std::exit(1);  // root is not bound by limits
  const support::LogCapture log;
  const Range range = allocate_range(3 * kPage);
  MemoryRegion region({"x"}, {range});
  region.start();
  std::cerr << log.text() << resident_pages(range) << " pages present\n";
  std::exit(region.started() ? 0 : 1);
}

TEST(PinningDeathTest, ThatCannotBeLockedIsAWarning) {
  if (!can_lock()) GTEST_SKIP() << "nothing can be locked here";
  EXPECT_EXIT(start_where_nothing_may_be_locked(), testing::ExitedWithCode(0),
              "warning: memory region 'x': [0-9]+ bytes are present but not locked in memory.*"
              "RLIMIT_MEMLOCK is 0 bytes\n3 pages present");
}

TEST(Pinning, MovesAndUnlocksOnce) {
  if (!can_lock()) GTEST_SKIP() << "nothing can be locked here";
  const Range range = allocate_range(2 * kPage);
  {
    Pinning first(range);
    EXPECT_EQ(first.lock_error(), 0);
    {
      const Pinning second(std::move(first));
      EXPECT_EQ(locked_kilobytes(range.address), 2 * kPage / 1024);
    }
    EXPECT_EQ(locked_kilobytes(range.address), 0U);
    ASSERT_EQ(::mlock(range.address, kPage), 0);
  }  // what was moved from unlocks nothing
  EXPECT_EQ(locked_kilobytes(range.address), kPage / 1024);
}

// The page of zeroes that reads of fresh memory find is replaced by a later write.
TEST(Pinning, OfMemoryForReadingWritesNothing) {
  void* const address = ::mmap(nullptr, kPage, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(address, MAP_FAILED);
  const std::shared_ptr<void> owner(address, [](void* mapped) { ::munmap(mapped, kPage); });
  const Range range = borrow_read_only_range({static_cast<const std::byte*>(address), kPage});
  const Pinning pinning(range);  // a write would end this program
  EXPECT_EQ(resident_pages(range), 1U);
}

}  // namespace
}  // namespace offload::memory
