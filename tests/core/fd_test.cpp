#include "core/fd.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <type_traits>

#include "core/error.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/thrown.hpp"

namespace offload::core {
namespace {

static_assert(!std::is_copy_constructible_v<Fd> && !std::is_copy_assignable_v<Fd>);
static_assert(!std::is_convertible_v<int, Fd>);

int open_one() {
  return ::open("/dev/null", O_RDONLY | O_CLOEXEC);
}

bool is_open(int fd) {
  return ::fcntl(fd, F_GETFD) >= 0;
}

TEST(Fd, OwnsNothingAtFirst) {
  const Fd fd;
  EXPECT_FALSE(fd.valid());
  EXPECT_EQ(fd.get(), -1);
}

TEST(Fd, ClosesAtTheEnd) {
  const int number = open_one();
  {
    const Fd fd(number);
    EXPECT_TRUE(fd.valid());
    EXPECT_EQ(fd.get(), number);
    EXPECT_TRUE(is_open(number));
  }
  EXPECT_FALSE(is_open(number));
}

TEST(Fd, ZeroIsADescriptor) {
  Fd fd(0);
  EXPECT_TRUE(fd.valid());
  EXPECT_EQ(fd.release(), 0);
}

TEST(FdDeathTest, ZeroIsClosedToo) {
  const auto close_zero = [] {
    { const Fd fd(STDIN_FILENO); }
    return is_open(STDIN_FILENO) ? 1 : 0;
  };
  EXPECT_EXIT(std::_Exit(close_zero()), testing::ExitedWithCode(0), "");
}

TEST(Fd, MovingHandsItOver) {
  const int number = open_one();
  Fd from(number);
  {
    const Fd to(std::move(from));
    EXPECT_EQ(to.get(), number);
    EXPECT_TRUE(is_open(number));
  }
  EXPECT_FALSE(is_open(number));
  EXPECT_FALSE(from.valid());  // NOLINT(bugprone-use-after-move): what is left is defined
}

TEST(Fd, MoveAssignmentClosesWhatWasThere) {
  const int first = open_one();
  const int second = open_one();
  Fd fd(first);
  Fd other(second);
  fd = std::move(other);
  EXPECT_FALSE(is_open(first));
  EXPECT_TRUE(is_open(second));
  EXPECT_EQ(fd.get(), second);
  EXPECT_FALSE(other.valid());  // NOLINT(bugprone-use-after-move): what is left is defined
}

TEST(Fd, MoveAssignmentToItselfKeepsIt) {
  const int number = open_one();
  Fd fd(number);
  Fd& same = fd;
  fd = std::move(same);
  EXPECT_EQ(fd.get(), number);
  EXPECT_TRUE(is_open(number));
}

TEST(Fd, ReleaseGivesItUp) {
  const int number = open_one();
  Fd fd(number);
  EXPECT_EQ(fd.release(), number);
  EXPECT_FALSE(fd.valid());
  EXPECT_TRUE(is_open(number));
  ::close(number);
}

TEST(Fd, ResetClosesAndTakesAnother) {
  const int first = open_one();
  const int second = open_one();
  Fd fd(first);
  fd.reset(second);
  EXPECT_FALSE(is_open(first));
  EXPECT_EQ(fd.get(), second);
  fd.reset(second);
  EXPECT_TRUE(is_open(second));
  fd.reset();
  EXPECT_FALSE(is_open(second));
  EXPECT_FALSE(fd.valid());
}

TEST(FdDeathTest, TheDescriptorLimitIsRaisedToTheHardOne) {
  const auto raised_as_far_as_it_may = [] {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = 64;
    limit.rlim_max = 100;
    ::setrlimit(RLIMIT_NOFILE, &limit);
    const int raised = raise_descriptor_limit();
    ::getrlimit(RLIMIT_NOFILE, &limit);
    return raised == 100 && limit.rlim_cur == 100 ? 0 : 1;
  };
  EXPECT_EXIT(std::_Exit(raised_as_far_as_it_may()), testing::ExitedWithCode(0), "");
}

TEST(OpenRegularFile, ReadsOne) {
  const support::TempDir folder;
  const std::string path = folder.file("file");
  folder.write("file", "text");
  const Fd file = open_regular_file(path, "cannot read it");
  std::string text(8, ' ');
  ASSERT_EQ(::read(file.get(), text.data(), text.size()), 4);
  EXPECT_EQ(text.substr(0, 4), "text");
}

TEST(OpenRegularFile, RefusesWhatIsNoFileWithoutWaiting) {
  const support::TempDir folder;
  const std::string fifo = folder.file("fifo");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  for (const std::string& path : {fifo, folder.path(), std::string("/dev/zero")}) {
    const auto open = [&] { static_cast<void>(open_regular_file(path, "cannot read it")); };
    EXPECT_EQ(support::thrown_by(open).code(), ErrorCode::invalid_value) << path;
  }
}

}  // namespace
}  // namespace offload::core
