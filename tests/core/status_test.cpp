#include "core/status.hpp"

#include <gtest/gtest.h>

namespace offload::core {
namespace {

TEST(Status, IsOkOrAnError) {
  EXPECT_TRUE(Status().ok());
  const Status failed = ErrorCode::timed_out;
  EXPECT_FALSE(failed.ok());
  EXPECT_EQ(failed.error(), ErrorCode::timed_out);
  EXPECT_FALSE(Status(ErrorCode{}).ok());  // the first code is no "ok"
}

TEST(Status, ComparesByOutcome) {
  EXPECT_EQ(Status(), Status());
  EXPECT_NE(Status(), Status(ErrorCode::full));
  EXPECT_NE(Status(ErrorCode::empty), Status(ErrorCode::full));
  EXPECT_EQ(Status(ErrorCode::full), Status(ErrorCode::full));
}

}  // namespace
}  // namespace offload::core
