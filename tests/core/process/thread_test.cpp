#include "core/process/thread.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "core/error.hpp"
#include "tests/support/thrown.hpp"

namespace offload::core {
namespace {

TEST(StartThread, HasItsNameAndCallsTheBody) {
  std::string name;
  start_thread("io-7", [&name] {
    std::array<char, 16> own{};
    ::pthread_getname_np(::pthread_self(), own.data(), own.size());
    name = own.data();
  }).join();
  EXPECT_EQ(name, "io-7");
  bool ran = false;
  start_thread<std::jthread>("joined", [&ran] { ran = true; }).join();
  EXPECT_TRUE(ran);
}

/// Exits with 7 if the error says that there are too few resources.
[[noreturn]] void start_threads_without_addresses() {
  // No addresses are left for the stack of a thread.
  const rlimit few{64U << 20, 128U << 20};
  ::setrlimit(RLIMIT_AS, &few);
  try {
    for (int i = 0; i < 1000; ++i) start_thread("io-7", [] { ::pause(); }).detach();
  } catch (const Error& error) {
    std::fputs(error.what(), stderr);
    std::_Exit(error.code() == ErrorCode::no_memory && error.system_errno() == EAGAIN ? 7 : 1);
  }
  std::_Exit(2);
}

TEST(StartThread, AnErrorNamesTheThreadAndTheLimits) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer has an address space of its own";
#endif
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(
      start_threads_without_addresses(), testing::ExitedWithCode(7),
      "cannot start thread io-7: Resource temporarily unavailable; .*limit of addresses: 67108864 "
      "bytes \\(ulimit -v\\)");
}

TEST(ThrowThreadError, NamesLimitsOnlyWhereOneIsTheReason) {
  const auto error = support::thrown_by([] { throw_thread_error("cannot start x", ENOENT); });
  EXPECT_EQ(error.code(), ErrorCode::not_found);
  EXPECT_STREQ(error.what(), "cannot start x: No such file or directory");
}

TEST(ThrowThreadError, NamesOnlyLimitsThatThereAre) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NPROC, &before), 0);
  const rlimit few{std::min<rlim_t>(before.rlim_max, 12345), before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NPROC, &few), 0);
  const std::string text =
      support::thrown_by([] { throw_thread_error("cannot start x", EAGAIN); }).what();
  ASSERT_EQ(::setrlimit(RLIMIT_NPROC, &before), 0);
  EXPECT_TRUE(text.starts_with("cannot start x: Resource temporarily unavailable")) << text;
  EXPECT_NE(text.find("; limits of threads: "), std::string::npos) << text;
  EXPECT_NE(text.find(std::to_string(few.rlim_cur) + " (ulimit -u)"), std::string::npos) << text;
  rlimit addresses{};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &addresses), 0);
  EXPECT_EQ(text.find("limit of addresses") == std::string::npos,
            addresses.rlim_cur == RLIM_INFINITY)
      << text;
}

}  // namespace
}  // namespace offload::core
