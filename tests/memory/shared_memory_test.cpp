#include "memory/shared_memory.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>
#include <type_traits>

#include "tests/support/log_capture.hpp"
#include "tests/support/memory.hpp"
#include "tests/support/temp_dir.hpp"

namespace offload::memory {
namespace {

using core::ErrorCode;
using support::thrown_by;

static_assert(!std::is_copy_constructible_v<SharedMemory>);

TEST(SharedMemory, IsOfWholePagesAndZero) {
  for (const std::size_t bytes : {std::size_t{1}, kPage - 1, kPage, kPage + 1, 5 * kPage}) {
    const auto memory = SharedMemory::create("test", bytes, -1);
    EXPECT_EQ(memory.size(), (bytes + kPage - 1) / kPage * kPage);
    EXPECT_TRUE(std::all_of(memory.data(), memory.data() + memory.size(),
                            [](std::byte b) { return b == std::byte{0}; }));
  }
}

TEST(SharedMemory, EveryPageIsThereFromTheStart) {
  const auto memory = SharedMemory::create("test", 64 * kPage, -1);
  struct stat status {};
  ASSERT_EQ(::fstat(memory.fd(), &status), 0);
  EXPECT_GE(static_cast<std::size_t>(status.st_blocks) * 512, memory.size());
}

TEST(SharedMemory, OnANode) {
  const auto memory = SharedMemory::create("test", kPage, 0);
  std::memset(memory.data(), 1, memory.size());
  EXPECT_EQ(memory.data()[kPage - 1], std::byte{1});
}

TEST(SharedMemory, NobodyCanResizeItOrLiftItsSeals) {
  const auto memory = SharedMemory::create("test", 2 * kPage, -1);
  EXPECT_EQ(::ftruncate(memory.fd(), static_cast<off_t>(kPage)), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(::ftruncate(memory.fd(), static_cast<off_t>(3 * kPage)), -1);
  EXPECT_EQ(::fcntl(memory.fd(), F_ADD_SEALS, F_SEAL_WRITE), -1);
}

// A peer that could add a seal could keep all others from writing.
TEST(SharedMemory, ItsSealsAreFinal) {
  for (const Writers writers : {Writers::all, Writers::maker}) {
    const auto memory = SharedMemory::create("test", kPage, -1, writers);
    EXPECT_NE(::fcntl(memory.fd(), F_GET_SEALS) & F_SEAL_SEAL, 0);
    EXPECT_EQ(::fcntl(memory.fd(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE), -1);
    EXPECT_EQ(errno, EPERM);
  }
}

TEST(SharedMemory, ASecondMappingSeesWhatIsWritten) {
  const auto first = SharedMemory::create("test", 2 * kPage, -1);
  const auto second = SharedMemory::import(duplicate(first.fd()), first.size());
  ASSERT_NE(first.data(), second.data());
  first.data()[0] = std::byte{1};
  second.data()[2 * kPage - 1] = std::byte{2};
  EXPECT_EQ(second.data()[0], std::byte{1});
  EXPECT_EQ(first.data()[2 * kPage - 1], std::byte{2});
}

TEST(SharedMemory, OutlivesItsMaker) {
  core::Fd fd;
  {
    const auto first = SharedMemory::create("test", kPage, -1);
    first.data()[7] = std::byte{7};
    fd = duplicate(first.fd());
  }
  EXPECT_EQ(SharedMemory::import(std::move(fd), kPage).data()[7], std::byte{7});
}

TEST(SharedMemory, UnmapsAndClosesAtTheEnd) {
  const std::byte* address = nullptr;
  int fd = -1;
  {
    const auto memory = SharedMemory::create("test", kPage, -1);
    address = memory.data();
    fd = memory.fd();
    EXPECT_TRUE(is_mapped(address));
  }
  EXPECT_FALSE(is_mapped(address));
  EXPECT_EQ(::fcntl(fd, F_GETFD), -1);
}

TEST(SharedMemory, MovingHandsItOver) {
  auto from = SharedMemory::create("test", kPage, -1);
  auto* const address = from.data();
  const SharedMemory to(std::move(from));
  EXPECT_EQ(to.data(), address);
  EXPECT_EQ(to.size(), kPage);
  EXPECT_EQ(from.data(), nullptr);  // NOLINT(bugprone-use-after-move): what is left is defined
  EXPECT_TRUE(is_mapped(address));
}

TEST(SharedMemory, ImportRefusesLessThanWasAnnounced) {
  for (const std::size_t there : {std::size_t{0}, kPage, 2 * kPage - 1}) {
    const auto error = thrown_by(
        [&] { SharedMemory::import(memfd(there, F_SEAL_SHRINK | F_SEAL_GROW), 2 * kPage); });
    EXPECT_EQ(error.code(), ErrorCode::invalid_value);
    EXPECT_NE(std::string(error.what()).find(std::to_string(there) + " bytes"), std::string::npos);
  }
}

TEST(SharedMemory, ImportRefusesNothingAndAbsurdSizes) {
  for (const std::size_t bytes : {std::size_t{0}, ~std::size_t{0}, std::size_t{1} << 63}) {
    const auto error = thrown_by([&] { SharedMemory::import(memfd(kPage, F_SEAL_SHRINK), bytes); });
    EXPECT_EQ(error.code(), ErrorCode::invalid_value);
    EXPECT_EQ(error.what(), "the shared memory has " + std::to_string(kPage) + " bytes, not " +
                                std::to_string(bytes));
  }
}

TEST(SharedMemory, ImportsASingleByte) {
  EXPECT_EQ(SharedMemory::import(memfd(1, F_SEAL_SHRINK), 1).size(), 1U);
}

TEST(SharedMemory, SaysWhatItCannotUnmap) {
  const auto memory = SharedMemory::create("test", kPage, -1);
  const support::LogCapture log;
  Unmap{kPage}(memory.data() + 1);
  EXPECT_TRUE(log.has("error: munmap of " + std::to_string(kPage) + " bytes")) << log.text();
  EXPECT_TRUE(is_mapped(memory.data()));
}

TEST(SharedMemory, ImportRefusesWhatCouldShrink) {
  for (const int seals : {0, F_SEAL_GROW, F_SEAL_SEAL}) {
    const auto error = thrown_by([&] { SharedMemory::import(memfd(kPage, seals), kPage); });
    EXPECT_EQ(error.code(), ErrorCode::invalid_value);
    EXPECT_NE(std::string(error.what()).find("sealed"), std::string::npos) << error.what();
  }
  EXPECT_EQ(SharedMemory::import(memfd(kPage, F_SEAL_SHRINK), kPage).size(), kPage);
}

TEST(SharedMemory, ImportRefusesAnythingElse) {
  const support::TempDir dir;
  const auto path = dir.file("plain");
  core::Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(::ftruncate(file.get(), static_cast<off_t>(kPage)), 0);
  EXPECT_EQ(code_of([&] { SharedMemory::import(std::move(file), kPage); }),
            ErrorCode::invalid_value);
  EXPECT_THROW(SharedMemory::import(core::Fd(::open("/dev/null", O_RDWR | O_CLOEXEC)), kPage),
               core::Error);
  EXPECT_THROW(SharedMemory::import(core::Fd(), kPage), core::Error);
  // Sealed against writing: it cannot be mapped for it.
  EXPECT_THROW(SharedMemory::import(memfd(kPage, F_SEAL_SHRINK | F_SEAL_WRITE), kPage),
               core::Error);
}

TEST(SharedMemory, ForReadingOnlyTakesADescriptorForReadingOnly) {
  const auto memory = SharedMemory::create("test", kPage, -1);
  const std::string path = "/proc/self/fd/" + std::to_string(memory.fd());
  const auto open_for_reading = [&] {
    return core::Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  };
  const auto reader = SharedMemory::import(open_for_reading(), kPage, false);
  memory.data()[1] = std::byte{1};
  EXPECT_EQ(reader.data()[1], std::byte{1});
  EXPECT_EQ(code_of([&] { SharedMemory::import(open_for_reading(), kPage); }),
            ErrorCode::not_permitted);
}

TEST(SharedMemory, ForReadingOnlyIsCheckedAlike) {
  EXPECT_EQ(code_of([] { SharedMemory::import(memfd(kPage, 0), kPage, false); }),
            ErrorCode::invalid_value);
  EXPECT_EQ(code_of([] { SharedMemory::import(memfd(kPage, F_SEAL_SHRINK), 2 * kPage, false); }),
            ErrorCode::invalid_value);
}

TEST(SharedMemory, MoreThanThereCanBe) {
  EXPECT_THROW(SharedMemory::create("test", std::size_t{1} << 62, -1), core::Error);
}

}  // namespace
}  // namespace offload::memory
