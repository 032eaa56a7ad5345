#include "core/log_queue.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/fd.hpp"
#include "tests/support/eventually.hpp"

namespace offload::core {
namespace {

using namespace std::chrono_literals;

/// The time limit for expected events.
constexpr Duration kBound = 20s;

std::string notice(std::uint64_t dropped) {
  return std::to_string(dropped) + " dropped\n";
}

struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    check_errno(::pipe2(ends.data(), O_CLOEXEC), "pipe2");
    reader = Fd(ends[0]);
    writer = Fd(ends[1]);
  }
  /// Reads until `last` was read, and returns all of it.
  [[nodiscard]] std::string read_until(const std::string& last) const {
    std::string all;
    std::array<char, 4096> some{};
    while (!all.ends_with(last)) {
      const auto count = ::read(reader.get(), some.data(), some.size());
      if (count <= 0) break;
      all.append(some.data(), static_cast<std::size_t>(count));
    }
    return all;
  }

  Fd reader;
  Fd writer;
};

TEST(LogQueue, WritesLinesInTheirOrder) {
  const Pipe pipe;
  LogQueue queue(pipe.writer.get(), 4096, notice);
  queue.append("one\n");
  queue.append("two\n");
  EXPECT_TRUE(queue.flush(kBound));
  EXPECT_EQ(pipe.read_until("two\n"), "one\ntwo\n");
}

TEST(LogQueue, LinesOfSeveralThreadsStayWhole) {
  const Pipe pipe;
  LogQueue queue(pipe.writer.get(), 1U << 16, notice);
  constexpr int kLines = 200;
  std::vector<std::thread> threads;
  for (const char* line : {"aaaa\n", "bbbb\n"}) {
    threads.emplace_back([&queue, line] {
      for (int i = 0; i < kLines; ++i) queue.append(line);
    });
  }
  for (auto& thread : threads) thread.join();
  queue.append("end\n");
  const auto text = pipe.read_until("end\n");
  ASSERT_EQ(text.size(), 2 * kLines * 5 + 4U);
  for (std::size_t at = 0; at + 5 < text.size(); at += 5) {
    const auto line = text.substr(at, 5);
    EXPECT_TRUE(line == "aaaa\n" || line == "bbbb\n") << line;
  }
}

// Nothing reads the pipe: the writer hangs in write(2), and all other threads continue.
TEST(LogQueue, DropsAndCountsWhereNobodyReads) {
  const Pipe pipe;
  constexpr std::size_t kCapacity = 64U << 10;
  LogQueue queue(pipe.writer.get(), kCapacity, notice);
  const std::string line = std::string(99, 'x') + "\n";
  const std::string first = std::string(8192, '1') + "\n";
  ASSERT_GT(::fcntl(pipe.writer.get(), F_SETPIPE_SZ, 4096), 0);
  queue.append(first);
  int in_pipe = 0;  // full: the writer hangs
  ASSERT_TRUE(support::eventually(
      [&] { return ::ioctl(pipe.reader.get(), FIONREAD, &in_pipe) == 0 && in_pipe == 4096; }));
  const std::size_t count = 8 * kCapacity / line.size();
  for (std::size_t i = 0; i < count; ++i) queue.append(line);
  EXPECT_FALSE(queue.flush(1ms));

  // Once the pipe is read, all lines that fitted arrive, and the number of those that did not.
  const auto text = pipe.read_until(" dropped\n");
  const auto said = text.rfind('\n', text.size() - 2) + 1;
  EXPECT_EQ((said - first.size()) / line.size() + std::stoul(text.substr(said)), count);
  EXPECT_GT(std::stoul(text.substr(said)), 0U);
  queue.append("the next\n");
  EXPECT_EQ(pipe.read_until("the next\n"), "the next\n");
}

TEST(LogQueue, ALineLongerThanItAllIsDropped) {
  const Pipe pipe;
  LogQueue queue(pipe.writer.get(), 16, notice);
  queue.append(std::string(17, 'x'));
  queue.append("short\n");
  EXPECT_EQ(pipe.read_until(" dropped\n"), "short\n1 dropped\n");
}

TEST(LogQueue, ALineMayBeAsLongAsItAll) {
  const Pipe pipe;
  LogQueue queue(pipe.writer.get(), 16, notice);
  queue.append("0123456789abcde\n");
  EXPECT_EQ(pipe.read_until("\n"), "0123456789abcde\n");
}

// The writes fail, as on a full disk.
TEST(LogQueue, CountsWhatCouldNotBeWritten) {
  const Fd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  ASSERT_GE(full.get(), 0);
  const Pipe pipe;
  const Fd out(::fcntl(full.get(), F_DUPFD_CLOEXEC, 0));
  LogQueue queue(out.get(), 4096, notice);
  queue.append("one\ntwo\n");
  EXPECT_TRUE(queue.flush(kBound));  // lost, but not waited for
  ASSERT_EQ(::dup3(pipe.writer.get(), out.get(), O_CLOEXEC), out.get());  // there is room again
  queue.append("three\n");
  EXPECT_EQ(pipe.read_until(" dropped\n"), "three\n2 dropped\n");
}

TEST(LogQueue, ANonBlockingDescriptorLosesNothing) {
  const Pipe pipe;
  ASSERT_EQ(::fcntl(pipe.writer.get(), F_SETFL, O_NONBLOCK), 0);
  LogQueue queue(pipe.writer.get(), 1U << 20, notice);
  std::string lines;
  for (int i = 0; i < 20'000; ++i) lines += "0123456789\n";
  queue.append(lines);  // more than a pipe holds
  queue.append("end\n");
  EXPECT_EQ(pipe.read_until("end\n"), lines + "end\n");
}

TEST(LogQueue, ItsThreadEndsWithIt) {
  const Pipe pipe;
  auto state = std::make_shared<int>();
  const std::weak_ptr<int> thread = state;
  {
    LogQueue queue(pipe.writer.get(), 4096, [state = std::exchange(state, nullptr)](auto dropped) {
      return notice(dropped);
    });
    queue.append("one\n");
    EXPECT_TRUE(queue.flush(kBound));  // it waits for lines now
    EXPECT_FALSE(thread.expired());
  }
  EXPECT_TRUE(support::eventually([&] { return thread.expired(); }));
}

TEST(LogQueue, ItsEndDoesNotWaitForAReader) {
  Pipe pipe;
  auto state = std::make_shared<int>();  // lives with the queue's state, which its thread shares
  const std::weak_ptr<int> thread = state;
  {
    LogQueue queue(
        pipe.writer.get(), 1U << 20,
        [state = std::exchange(state, nullptr)](auto dropped) { return notice(dropped); });
    queue.append(std::string(1U << 20, 'x'));  // more than a pipe holds
  }
  pipe.reader.reset();  // lets the thread go: EPIPE, and no signal
  EXPECT_TRUE(support::eventually([&] { return thread.expired(); }));
}

}  // namespace
}  // namespace offload::core
