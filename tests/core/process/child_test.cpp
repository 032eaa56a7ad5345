#include "core/process/child.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include "core/fd.hpp"
#include "core/signals.hpp"

namespace offload::core {
namespace {

constexpr Duration kLong = std::chrono::seconds(60);
constexpr Duration kShort = std::chrono::milliseconds(50);

/// A command of a shell, with both its outputs in a pipe.
struct Shell {
  explicit Shell(std::string command) {
    int ends[2];
    check_errno(::pipe2(ends, O_CLOEXEC), "pipe2");
    output = Fd(ends[0]);
    const Fd writing(ends[1]);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, writing.get(), STDOUT_FILENO);
    const SpawnAttributes attributes;
    std::vector<std::string> words{"/bin/sh", "-c", std::move(command)};
    check_spawn(::posix_spawn(&process, words.front().c_str(), &actions, attributes.get(),
                              pointers_to(words).data(), environ),
                "posix_spawn");
    ::posix_spawn_file_actions_destroy(&actions);
  }

  /// Waits for the shell's first line.
  std::string line() const {
    std::string text;
    for (char c = 0; ::read(output.get(), &c, 1) == 1 && c != '\n';) text += c;
    return text;
  }

  Fd output;
  pid_t process = -1;
};

bool exists(pid_t process) {
  return ::kill(process, 0) == 0 || errno != ESRCH;
}

TEST(ProcessGroup, SaysWhyItsProcessFailed) {
  const auto failure_of = [](const char* command) {
    ProcessGroup group(Shell(command).process);
    EXPECT_TRUE(group.wait_until(Clock::now() + kLong));
    EXPECT_TRUE(group.has_ended()) << "and stays so";
    return group.failure();
  };
  EXPECT_EQ(failure_of("exit 0"), "");
  EXPECT_EQ(failure_of("exit 3"), "exit status 3");
  EXPECT_EQ(failure_of("kill -9 $$"), "signal 9");
}

TEST(ProcessGroup, HasFailedIfItsStatusIsNotKnown) {
  const auto former = std::signal(SIGCHLD, SIG_IGN);  // the kernel reaps then
  ProcessGroup group(Shell("exit 0").process);
  EXPECT_TRUE(group.wait_until(Clock::now() + kLong));
  EXPECT_EQ(group.failure(), "unknown exit status");
  std::signal(SIGCHLD, former);
}

TEST(ProcessGroup, WaitsUntilTheDeadlineOnly) {
  ProcessGroup group(Shell("sleep 60").process);
  const auto begin = Clock::now();
  EXPECT_FALSE(group.wait_until(begin + kShort));
  EXPECT_GE(Clock::now() - begin, kShort);
  EXPECT_FALSE(group.has_ended());
}

TEST(ProcessGroup, EndsByTheFirstSignal) {
  const Shell shell("trap 'exit 5' TERM; echo ready; while :; do sleep 0.01; done");
  ProcessGroup group(shell.process);
  EXPECT_EQ(shell.line(), "ready");
  group.end(kLong);
  EXPECT_EQ(group.failure(), "exit status 5");
}

TEST(ProcessGroup, KillsWhatIgnoresTheFirstSignal) {
  ProcessGroup other(Shell("sleep 60").process);
  const Shell shell("trap '' TERM; echo ready; while :; do sleep 0.01; done");
  ProcessGroup group(shell.process);
  EXPECT_EQ(shell.line(), "ready");
  group.end(kShort);
  EXPECT_TRUE(group.has_ended());
  EXPECT_EQ(group.failure(), "signal 9");
  EXPECT_FALSE(other.has_ended());
}

TEST(ProcessGroup, AllOfItGetTheFirstSignal) {
  const Shell shell(
      "trap 'wait; exit 5' TERM; "
      "sh -c 'trap \"echo ended; exit\" TERM; echo ready; while :; do sleep 0.01; done' & wait");
  ProcessGroup group(shell.process);
  EXPECT_EQ(shell.line(), "ready");
  group.end(kLong);
  EXPECT_EQ(shell.line(), "ended");
  EXPECT_EQ(group.failure(), "exit status 5");
}

TEST(ProcessGroup, EndsWhatItsProcessLeftBehind) {
  const Shell shell("sh -c 'echo $$; exec sleep 60' & wait");
  pid_t left = 0;
  {
    ProcessGroup first(shell.process);
    left = std::stoi(shell.line());
    const ProcessGroup second(std::move(first));
    EXPECT_TRUE(exists(left));
  }
  // init reaps it.
  for (const auto end = Clock::now() + kLong; exists(left) && Clock::now() < end;) ::usleep(1000);
  EXPECT_FALSE(exists(left));
}

/// Reads the output of a command. `outcome` is the result of read_until_end().
std::string output_of(const std::string& command, Duration limit, bool& outcome) {
  const Shell shell(command);
  ProcessGroup group(shell.process);
  std::string text;
  const OutputReader reader{
      [&](std::span<const char> piece) { text += std::string(piece.begin(), piece.end()); }, [] {}};
  outcome = read_until_end(group, shell.output.get(), -1, Clock::now() + limit, reader);
  return text;
}

// This program may ignore the signals, as OpenSSL needs.
TEST(ProcessGroup, ItsProcessEndsByABrokenPipeOrALongFile) {
  for (const auto& [signal, name] : {std::pair{SIGPIPE, "PIPE"}, std::pair{SIGXFSZ, "XFSZ"}}) {
    const auto former = std::signal(signal, SIG_IGN);
    ProcessGroup group(Shell(std::string("kill -") + name + " $$; exit 7").process);
    std::signal(signal, former);
    EXPECT_TRUE(group.wait_until(Clock::now() + kLong));
    EXPECT_EQ(group.failure(), "signal " + std::to_string(signal));
  }
}

TEST(ReadUntilEnd, GivesTheOutputOfAProcess) {
  bool has_ended = false;
  EXPECT_EQ(output_of("echo one; sleep 0.05; echo two", kLong, has_ended), "one\ntwo\n");
  EXPECT_TRUE(has_ended);
  EXPECT_EQ(output_of("printf 1; sleep 0.05; printf 2", kLong, has_ended), "12");
  EXPECT_TRUE(has_ended);
}

TEST(ReadUntilEnd, WaitsForAProcessThatHasClosedItsOutput) {
  const Shell shell("exec >&-; sleep 0.05; exit 4");
  ProcessGroup group(shell.process);
  const OutputReader reader{[](std::span<const char>) {}, [] {}};
  EXPECT_TRUE(read_until_end(group, shell.output.get(), -1, Clock::now() + kLong, reader));
  EXPECT_EQ(group.failure(), "exit status 4");
}

TEST(ReadUntilEnd, ReturnsAtTheDeadline) {
  bool has_ended = true;
  EXPECT_EQ(output_of("echo one; sleep 60", kShort * 10, has_ended), "one\n");
  EXPECT_FALSE(has_ended);
  output_of("exec >&-; sleep 60", kShort, has_ended);
  EXPECT_FALSE(has_ended);
}

TEST(ReadUntilEnd, TellsOfASignal) {
  int signals[2];
  check_errno(::pipe2(signals, O_CLOEXEC), "pipe2");
  const Fd reading(signals[0]);
  const Fd writing(signals[1]);
  const Shell shell("sleep 60");
  ProcessGroup group(shell.process);
  ASSERT_EQ(::write(writing.get(), "", 1), 1);
  const OutputReader reader{[](std::span<const char>) {}, [] { throw Interrupted(); }};
  EXPECT_THROW(
      read_until_end(group, shell.output.get(), reading.get(), Clock::now() + kLong, reader),
      Interrupted);
}

}  // namespace
}  // namespace offload::core
