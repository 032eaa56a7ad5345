#include "core/error.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <set>
#include <string>
#include <utility>

#include "tests/support/thrown.hpp"

namespace offload::core {
namespace {

using support::thrown_by;

TEST(Error, EveryErrnoThatMattersHasItsKind) {
  const std::pair<int, ErrorCode> kinds[] = {
      {EINVAL, ErrorCode::invalid_value},
      {EPERM, ErrorCode::not_permitted},
      {EACCES, ErrorCode::not_permitted},
      {ENOENT, ErrorCode::not_found},
      {EEXIST, ErrorCode::already_exists},
      {EADDRINUSE, ErrorCode::in_use},
      {EBUSY, ErrorCode::in_use},
      {ENOMEM, ErrorCode::no_memory},
      {EMFILE, ErrorCode::no_memory},
      {ENFILE, ErrorCode::no_memory},
      {ETIMEDOUT, ErrorCode::timed_out},
      {ECONNREFUSED, ErrorCode::not_connected},
      {ENETUNREACH, ErrorCode::not_connected},
      {EHOSTUNREACH, ErrorCode::not_connected},
      {ENOTCONN, ErrorCode::not_connected},
      {EPIPE, ErrorCode::connection_reset},
      {ECONNRESET, ErrorCode::connection_reset},
      {EOPNOTSUPP, ErrorCode::not_supported},
      {ENOSYS, ErrorCode::not_supported},
      {EIO, ErrorCode::io_failed},
      {EAGAIN, ErrorCode::again},
      {EALREADY, ErrorCode::in_progress},
      {EINPROGRESS, ErrorCode::connection_in_progress},
      {ECONNABORTED, ErrorCode::connection_aborted},
      {ENOLCK, ErrorCode::no_lock},
      {ENOSPC, ErrorCode::full},
      {ENOBUFS, ErrorCode::no_memory},
      {ESHUTDOWN, ErrorCode::shutdown},
      {EPROTONOSUPPORT, ErrorCode::not_supported},
      {ENOTDIR, ErrorCode::operating_system},
  };
  for (const auto& [errnum, code] : kinds) {
    const auto error = thrown_by([errnum = errnum] { throw_errno("call", errnum); });
    EXPECT_EQ(error.code(), code) << describe_errno(errnum);
    EXPECT_EQ(error.cause(), (Cause{Cause::Domain::system, errnum}));
    EXPECT_EQ(error.system_errno(), errnum);
  }
}

TEST(Error, TextSaysWhatWasDoneAndWhy) {
  const auto error = thrown_by([] { throw_errno("cannot open /x", ENOENT); });
  EXPECT_STREQ(error.what(), "cannot open /x: No such file or directory");
}

TEST(Error, TextNamesTheLimitOfThisProcess) {
  rlimit files{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
  EXPECT_EQ(describe_errno(EMFILE),
            "Too many open files (the limit is " + std::to_string(files.rlim_cur) + ", ulimit -n)");
  rlimit size{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &size), 0);
  const rlimit smaller{1U << 20, size.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &smaller), 0);
  const std::string limited = describe_errno(EFBIG);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &size), 0);
  EXPECT_EQ(limited, "File too large (the limit is 1048576 bytes, ulimit -f)");
  if (size.rlim_cur == RLIM_INFINITY) {
    EXPECT_EQ(describe_errno(EFBIG), "File too large");
  }
}

TEST(Error, CheckErrnoPassesResultsThrough) {
  EXPECT_EQ(check_errno(0, "call"), 0);
  EXPECT_EQ(check_errno(7, "call"), 7);
}

TEST(Error, CheckErrnoThrowsForErrno) {
  const auto error = thrown_by([] {
    errno = EACCES;
    check_errno(-1, "call");
  });
  EXPECT_EQ(error.code(), ErrorCode::not_permitted);
  EXPECT_EQ(error.system_errno(), EACCES);
  EXPECT_STREQ(error.what(), "call: Permission denied");
}

TEST(Error, ACauseIsOptional) {
  const Error error(ErrorCode::timed_out, "late");
  EXPECT_EQ(error.code(), ErrorCode::timed_out);
  EXPECT_EQ(error.cause(), Cause{});
  EXPECT_EQ(error.system_errno(), 0);
}

TEST(Error, ACauseThatIsNoErrnoIsNotTakenForOne) {
  const Error error(ErrorCode::driver, "launch", {Cause::Domain::cuda, EACCES});
  EXPECT_EQ(error.system_errno(), 0);
  EXPECT_EQ(error.cause().status, EACCES);
}

TEST(Error, AWrongStateNamesObjectStateAndCall) {
  const auto error = thrown_by([] { throw_bad_state("region 'x'", "started", "add a range"); });
  EXPECT_EQ(error.code(), ErrorCode::bad_state);
  EXPECT_STREQ(error.what(), "region 'x' is started: cannot add a range");
}

TEST(Error, EveryCodeHasANameAndADescriptionOfItsOwn) {
  std::set<std::string_view> names;
  std::set<std::string_view> descriptions;
  const auto last = static_cast<unsigned>(ErrorCode::unexpected);
  for (unsigned code = 0; code <= last; ++code) {
    names.insert(name_of(static_cast<ErrorCode>(code)));
    descriptions.insert(describe(static_cast<ErrorCode>(code)));
  }
  EXPECT_EQ(names.size(), last + 1);
  EXPECT_EQ(descriptions.size(), last + 1);
  EXPECT_EQ(names.count("unknown"), 0U);
  EXPECT_EQ(name_of(ErrorCode::timed_out), "timed_out");
  EXPECT_EQ(name_of(static_cast<ErrorCode>(last + 1)), "unknown");
}

}  // namespace
}  // namespace offload::core
