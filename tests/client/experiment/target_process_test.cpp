#include "apps/client/experiment/target_process.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <string>

#include "core/clock.hpp"
#include "core/fd.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/temp_dir.hpp"

namespace offload::client {
namespace {

bool ends(TargetProcess& process) {
  return process.wait_until(core::Clock::now() + support::kBound);
}

TEST(TargetProcess, ItsOutputGoesToItsLog) {
  const support::TempDir folder;
  TargetProcess process("echo out; echo wrong >&2", folder.file("log"));
  EXPECT_TRUE(ends(process));
  EXPECT_FALSE(process.is_running());
  EXPECT_EQ(folder.read("log"), "out\nwrong\n");
  EXPECT_EQ(process.command(), "echo out; echo wrong >&2");
  EXPECT_EQ(process.log(), folder.file("log"));
}

class TargetProcessWithAChannel : public testing::Test {
 protected:
  TargetProcessWithAChannel() {
    std::array<int, 2> ends_of_it{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_of_it.data()), 0);
    here_ = core::Fd(ends_of_it[0]);
    there_ = core::Fd(ends_of_it[1]);
  }
  void start(const char* command) {
    process_.emplace(command, folder_.file("log"), there_.get());
    there_.reset();
  }
  /// Returns the next byte of the other end: 0 if that has ended, 1 if nothing came in time.
  char next() {
    pollfd readable{here_.get(), POLLIN, 0};
    char byte = 1;
    if (::poll(&readable, 1, 20'000) != 1) return 1;
    return ::read(here_.get(), &byte, 1) == 0 ? '\0' : byte;
  }

  const support::TempDir folder_;
  core::Fd here_;
  core::Fd there_;
  std::optional<TargetProcess> process_;
};

TEST_F(TargetProcessWithAChannel, ItIsInputAndOutput) {
  start("read word; echo \"<$word>\"; echo wrong >&2");
  ASSERT_EQ(::write(here_.get(), "word\n", 5), 5);
  std::string answer;
  for (char byte = next(); byte > '\1'; byte = next()) answer += byte;
  EXPECT_EQ(answer, "<word>\n");
  EXPECT_TRUE(ends(*process_));
  EXPECT_EQ(folder_.read("log"), "wrong\n");
}

// This process may have descriptors of /dev/null, too, which both inherit.
TEST_F(TargetProcessWithAChannel, WithoutOneItsInputIsEmptyAndOpenOnce) {
  const std::string count = "readlink /proc/$$/fd/* | grep -c /dev/null >&2";
  start(count.c_str());
  ASSERT_TRUE(ends(*process_));
  const int inherited = std::stoi(folder_.read("log"));
  TargetProcess process("cat; " + count, folder_.file("other"));
  EXPECT_TRUE(ends(process));
  EXPECT_EQ(folder_.read("other"), std::to_string(inherited + 1) + "\n");
}

// The processes that the command has started end with it.
TEST_F(TargetProcessWithAChannel, ItsGroupEndsWithIt) {
  start("sleep 1000 & echo; wait");
  EXPECT_EQ(next(), '\n');
  EXPECT_TRUE(process_->is_running());
  EXPECT_FALSE(process_->wait_until(core::Clock::now()));
  process_.reset();
  EXPECT_EQ(next(), '\0');
}

}  // namespace
}  // namespace offload::client
