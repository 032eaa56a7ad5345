#include "core/process/thread.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

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
  const rlimit few{64U << 20, 64U << 20};
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

}  // namespace
}  // namespace offload::core
