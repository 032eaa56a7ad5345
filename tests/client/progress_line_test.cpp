#include "apps/client/progress_line.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>

#include "core/error.hpp"
#include "core/fd.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/readable.hpp"

namespace offload::client {
namespace {

/// Standard error, replaced by one end of something whose other end the test reads.
class StandardError {
 public:
  explicit StandardError(int replacement) : saved_(core::check_errno(::dup(STDERR_FILENO), "dup")) {
    core::check_errno(::dup2(replacement, STDERR_FILENO), "dup2");
  }
  StandardError(const StandardError&) = delete;
  StandardError& operator=(const StandardError&) = delete;
  ~StandardError() { ::dup2(saved_.get(), STDERR_FILENO); }

 private:
  core::Fd saved_;
};

std::string read_all(int fd) {
  std::string text;
  std::array<char, 4096> room{};
  while (support::is_readable(fd, 0)) {
    const ssize_t count = ::read(fd, room.data(), room.size());
    if (count <= 0) break;
    text.append(room.data(), static_cast<std::size_t>(count));
  }
  return text;
}

TEST(ProgressLine, IsRewrittenOnATerminalOnceASecondAndWiped) {
  const core::Fd terminal(::posix_openpt(O_RDWR | O_NOCTTY));
  ASSERT_TRUE(terminal.valid());
  ASSERT_EQ(::grantpt(terminal.get()), 0);
  ASSERT_EQ(::unlockpt(terminal.get()), 0);
  const core::Fd other(::open(::ptsname(terminal.get()), O_RDWR | O_NOCTTY));
  ASSERT_TRUE(other.valid());
  std::string line;
  std::string end;
  {
    const StandardError replaced(other.get());
    {
      ProgressLine progress;
      progress.update(1);
      EXPECT_EQ(read_all(terminal.get()), "");  // not before an interval has passed
      EXPECT_TRUE(support::eventually([&] {
        progress.update(5'000'000);
        return !(line = read_all(terminal.get())).empty();
      }));
      progress.update(6'000'000);  // too soon
    }
    end = read_all(terminal.get());
  }
  EXPECT_EQ(line.rfind("\r1 s: 5000000 operations, ", 0), 0U) << line;
  EXPECT_NE(line.find(" MIOP/s\033[K"), std::string::npos) << line;
  EXPECT_EQ(end, "\r\033[K");
}

TEST(ProgressLine, IsNotShownElsewhere) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const core::Fd read_end(ends[0]);
  const core::Fd write_end(ends[1]);
  {
    const StandardError replaced(write_end.get());
    ProgressLine progress;
    const auto begin = core::Clock::now();
    while (core::Clock::now() - begin < ProgressLine::kInterval) progress.update(1);
    progress.update(2);
  }
  EXPECT_EQ(read_all(read_end.get()), "");
}

}  // namespace
}  // namespace offload::client
