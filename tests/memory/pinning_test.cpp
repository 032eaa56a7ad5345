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

TEST(Pinning, StartLeavesWhatAnExporterManagesAlone) {
  void* const address = ::mmap(nullptr, kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(address, MAP_FAILED);
  const std::shared_ptr<void> owner(address, [](void* mapped) { ::munmap(mapped, kPage); });
  const Pinning pinning(foreign_range(address, kPage, Location::shared, owner,
                                      {DescriptorKind::dma_buf, STDERR_FILENO, 0}));
  EXPECT_EQ(pinning.lock_error(), 0);
}

/// Returns a field of /proc/self/smaps, in kB, for the mapping that begins at `address`.
std::size_t kilobytes(const std::string& field, const std::byte* address) {
  std::ostringstream begin;
  begin << std::hex << reinterpret_cast<std::uintptr_t>(address) << '-';
  std::ifstream maps("/proc/self/smaps");
  std::string line;
  while (std::getline(maps, line) && !line.starts_with(begin.str())) {
  }
  while (std::getline(maps, line)) {
    if (line.starts_with(field + ":")) return std::stoul(line.substr(line.find(' ')));
  }
  return 0;
}

std::size_t locked_kilobytes(const std::byte* address) {
  return kilobytes("Locked", address);
}

/// Returns whether mlock works: sanitizers make it do nothing.
bool can_lock() {
  const Range range = allocate_range(kPage);
  return ::mlock(range.address, kPage) == 0 && locked_kilobytes(range.address) != 0;
}

TEST(Pinning, IsLockedInMemoryWhileStarted) {
  if (!can_lock()) GTEST_SKIP() << "nothing can be locked here";
  const Range range = allocate_range(4 * kPage);
  const support::LogCapture log;
  MemoryRegion region({"x"}, {range});
  region.start();
  EXPECT_EQ(locked_kilobytes(range.address), 4 * kPage / 1024);
  region.stop();
  EXPECT_EQ(locked_kilobytes(range.address), 0U);
  EXPECT_EQ(log.text(), "");
}

TEST(Pinning, SaysWhatItCannotUnlock) {
  if (!can_lock()) GTEST_SKIP() << "nothing can be locked here";
  void* const address =
      ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(address, MAP_FAILED);
  const support::LogCapture log;
  {
    const Pinning pinning(borrow_range({static_cast<std::byte*>(address), kPage}));
    ::munmap(address, kPage);
  }
  EXPECT_TRUE(log.has("warning: munlock of " + std::to_string(kPage) + " bytes")) << log.text();
}

/// Starts a region of two pages and of parts of three others in a process that may lock `bytes`,
/// and prints the log. Ends the process.
void start_where_few_may_be_locked(std::size_t bytes) {
  struct rlimit few {};
  few.rlim_cur = few.rlim_max = bytes;
  ::setrlimit(RLIMIT_MEMLOCK, &few);
  constexpr unsigned kNobody = 65534;
  if (::geteuid() == 0 && ::setuid(kNobody) != 0) std::exit(1);  // root is not bound by limits
  const support::LogCapture log;
  // Pages without access rights keep the mappings apart for smaps.
  const Range pages = allocate_range(8 * kPage);
  for (const std::size_t gap : {0U, 3U, 7U}) {
    ::mprotect(pages.address + gap * kPage, kPage, PROT_NONE);
  }
  std::byte* const first = pages.address + kPage;
  std::byte* const second = pages.address + 4 * kPage;
  MemoryRegion region(
      {"x"}, {borrow_range({first, 2 * kPage}), borrow_range({second + kPage - 1, kPage + 2})});
  region.start();
  // The page of zeroes, which reads alone would map, is not anonymous memory.
  std::cerr << log.text() << kilobytes("Anonymous", first) * 1024 / kPage << " and "
            << kilobytes("Anonymous", second) * 1024 / kPage << " pages present\n";
  std::exit(region.started() ? 0 : 1);
}

TEST(PinningDeathTest, ThatCannotBeLockedIsAWarning) {
  if (!can_lock()) GTEST_SKIP() << "nothing can be locked here";
  const auto expected = [](std::size_t unlocked, std::size_t limit) {
    return "warning: memory region 'x': " + std::to_string(unlocked) +
           " bytes are present but not locked in memory.*RLIMIT_MEMLOCK is " +
           std::to_string(limit) + " bytes\n2 and 3 pages present";
  };
  EXPECT_EXIT(start_where_few_may_be_locked(0), testing::ExitedWithCode(0),
              expected(3 * kPage + 2, 0));
  EXPECT_EXIT(start_where_few_may_be_locked(2 * kPage), testing::ExitedWithCode(0),
              expected(kPage + 2, 2 * kPage));
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
