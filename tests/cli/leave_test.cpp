#include "cli/leave.hpp"

#include <gtest/gtest.h>

#include <string>

namespace offload::cli {
namespace {

/// The status that leave() returns, and what it prints where.
struct Left {
  int status;
  std::string out;
  std::string error;
  friend bool operator==(const Left&, const Left&) = default;
};

Left left_by(const Leave& how) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const int status = leave(how);
  return {status, testing::internal::GetCapturedStdout(), testing::internal::GetCapturedStderr()};
}

TEST(Leave, AnAnswerIsPrintedToStandardOutput) {
  EXPECT_EQ(left_by({0, "usage: ..."}), (Left{0, "usage: ...\n", ""}));
}

TEST(Leave, AWrongCommandLineIsReportedOnStandardError) {
  EXPECT_EQ(left_by({kUsageError, "program: --n is no number"}),
            (Left{kUsageError, "", "program: --n is no number\n"}));
}

TEST(Leave, TheReasonIsWithoutTheProgram) {
  EXPECT_EQ((Leave{kUsageError, "program: --n: 'x' is no number"}.reason()),
            "--n: 'x' is no number");
  EXPECT_EQ((Leave{0, "usage"}.reason()), "usage");
}

}  // namespace
}  // namespace offload::cli
