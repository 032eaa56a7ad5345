#include "core/exit_status.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <string>

#include "tests/support/temp_dir.hpp"

namespace offload::core {
namespace {

/// Ends the process like a main whose standard output is `path`; closed if it is empty.
[[noreturn]] void end_with_output(const std::string& path, const std::function<int()>& run) {
  std::fflush(stdout);  // what googletest has printed
  ::close(STDOUT_FILENO);
  if (!path.empty() && ::open(path.c_str(), O_WRONLY) != STDOUT_FILENO) std::abort();
  std::exit(exit_status_of("program", run));
}

constexpr const char* kFull = "program: cannot write standard output: No space left on device";

/// Each test runs in a separate process: a fork of this one lacks the thread that writes the log,
/// if a test has started it.
class ExitStatus : public testing::Test {
 protected:
  ExitStatus() { testing::GTEST_FLAG(death_test_style) = "threadsafe"; }
};

TEST_F(ExitStatus, IsWhatRunReturns) {
  EXPECT_EXIT(end_with_output("/dev/null", [] { return fmt::print("text"), 0; }),
              testing::ExitedWithCode(0), "^$");
  EXPECT_EXIT(end_with_output("/dev/null", [] { return 7; }), testing::ExitedWithCode(7), "^$");
}

TEST_F(ExitStatus, IsOneAfterAnError) {
  const auto fails = []() -> int { throw std::runtime_error("no luck"); };
  EXPECT_EXIT(end_with_output("/dev/null", fails), testing::ExitedWithCode(1), "program: no luck");
}

TEST_F(ExitStatus, AFullStandardOutputIsAnError) {
  EXPECT_EXIT(end_with_output("/dev/full", [] { return fmt::print("text"), 0; }),
              testing::ExitedWithCode(1), kFull);
  // It failed before the end.
  const auto flushes = [] { return fmt::print("text"), std::fflush(stdout), 0; };
  EXPECT_EXIT(end_with_output("/dev/full", flushes), testing::ExitedWithCode(1),
              "^program: cannot write standard output\n$");  // nothing is known of the reason now
  // The text is longer than the buffer: fmt::print() throws.
  const auto prints_much = [] { return fmt::print("{}", std::string(1U << 20, 'x')), 0; };
  EXPECT_EXIT(end_with_output("/dev/full", prints_much), testing::ExitedWithCode(1), kFull);
}

TEST_F(ExitStatus, AClosedStandardOutputMattersToWhatIsPrinted) {
  EXPECT_EXIT(end_with_output("", [] { return 0; }), testing::ExitedWithCode(0), "^$");
  EXPECT_EXIT(end_with_output("", [] { return fmt::print("text"), 0; }), testing::ExitedWithCode(1),
              "cannot write standard output: Bad file descriptor");
}

TEST_F(ExitStatus, NoFileTakesTheNumberOfAClosedDescriptor) {
  const auto end_without = [](const std::function<int()>& run) {
    std::fflush(stdout);  // what the test's main() has printed
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::close(fd);
    std::exit(exit_status_of("program", run));
  };
  EXPECT_EXIT(end_without([] { return ::open("/dev/null", O_RDWR) > STDERR_FILENO ? 7 : 1; }),
              testing::ExitedWithCode(7), "^$");
  const auto use = [] {
    char byte = 0;
    if (::read(STDIN_FILENO, &byte, 1) != -1 || errno != EBADF) return 1;
    if (::write(STDOUT_FILENO, &byte, 1) != -1 || errno != EBADF) return 1;
    return ::write(STDERR_FILENO, &byte, 1) == -1 && errno == EBADF ? 7 : 1;
  };
  EXPECT_EXIT(end_without(use), testing::ExitedWithCode(7), "^$");
}

TEST_F(ExitStatus, AFileThatMayNotGrowIsAnError) {
  const support::TempDir folder;
  folder.write("out", "");
  const auto prints = [] {
    const rlimit bytes{1024, 1024};
    ::setrlimit(RLIMIT_FSIZE, &bytes);
    return fmt::print("{}", std::string(2000, 'x')), 0;
  };
  EXPECT_EXIT(end_with_output(folder.file("out"), prints), testing::ExitedWithCode(1),
              "cannot write standard output: File too large .the limit is 1024 bytes, ulimit -f.");
}

TEST_F(ExitStatus, ATooSmallStackIsAnError) {
  const auto end_with_stack = [](rlim_t bytes) {
    rlimit limit{};
    ::getrlimit(RLIMIT_STACK, &limit);
    limit.rlim_cur = bytes;
    ::setrlimit(RLIMIT_STACK, &limit);
    end_with_output("/dev/null", [] { return 7; });
  };
  constexpr rlim_t kLeast = 256 * 1024;
  EXPECT_EXIT(end_with_stack(kLeast), testing::ExitedWithCode(7), "^$");
  EXPECT_EXIT(end_with_stack(kLeast - 1), testing::ExitedWithCode(1),
              "^program: the stack limit of 255 KiB .ulimit -s. is too low: 256 KiB are needed\n$");
}

TEST_F(ExitStatus, NoMemoryIsAnError) {
  const auto fails = []() -> int { throw std::bad_alloc(); };
  EXPECT_EXIT(end_with_output("/dev/null", fails), testing::ExitedWithCode(1),
              "program: Cannot allocate memory");
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
constexpr const char* kNoAddresses =
    "^program: Cannot allocate memory .the limit is 1048576 bytes of address space, ulimit -v.\n$";

/// Limits the address space to a mebibyte; the process has more.
void allow_a_mebibyte() {
  const rlimit bytes{1U << 20, 1U << 20};
  ::setrlimit(RLIMIT_AS, &bytes);
}

TEST_F(ExitStatus, TheLimitOfAddressSpaceIsNamed) {
  const auto fails = []() -> int {
    allow_a_mebibyte();
    return static_cast<int>(std::string(std::size_t{1} << 30, 'x').size());
  };
  EXPECT_EXIT(end_with_output("/dev/null", fails), testing::ExitedWithCode(1), kNoAddresses);
}

/// Allocates all the memory that malloc() has.
void take_all_memory() {
  allow_a_mebibyte();
  void* volatile taken = nullptr;
  for (std::size_t size = std::size_t{1} << 20; size >= 1; size /= 2) {
    do taken = std::malloc(size);
    while (taken != nullptr);
  }
}

TEST_F(ExitStatus, TheErrorIsPrintedWithoutMemory) {
  const auto fails = []() -> int {
    take_all_memory();
    throw std::bad_alloc();
  };
  EXPECT_EXIT(end_with_output("/dev/null", fails), testing::ExitedWithCode(1), kNoAddresses);
}

TEST_F(ExitStatus, AProgramThatBeginsWithoutMemoryDoesNotRun) {
  const auto begins = [] {
    take_all_memory();
    std::_Exit(exit_status_of("program", [] { return 7; }));
  };
  EXPECT_EXIT(begins(), testing::ExitedWithCode(1), kNoAddresses);
}
#endif

}  // namespace
}  // namespace offload::core
