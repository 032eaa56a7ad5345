#include "rdma/verbs/error.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "core/fd.hpp"
#include "tests/support/thrown.hpp"

namespace offload::rdma {
namespace {

using core::ErrorCode;
using support::thrown_by;

TEST(Errors, EveryConventionComesToOne) {
  EXPECT_NO_THROW(check(0, "try"));
  for (const int result : {EBUSY, -EBUSY, -1}) {
    const auto error = thrown_by([&] {
      errno = EBUSY;
      check(result, "try");
    });
    EXPECT_EQ(error.code(), ErrorCode::in_use);
    EXPECT_EQ(error.system_errno(), EBUSY);
    EXPECT_EQ(std::string(error.what()).rfind("try: ", 0), 0U);
  }
}

TEST(Errors, AResultOfMinusOneWithoutAReasonIsAnIoError) {
  errno = 0;
  EXPECT_EQ(errno_of(-1), EIO);
  EXPECT_EQ(errno_of(1), 1);
  EXPECT_EQ(errno_of(-2), 2);
}

TEST(Errors, ReadsOfADescriptorCanBeMadeToReturnAtOnce) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const core::Fd reader(ends[0]);
  const core::Fd writer(ends[1]);
  ASSERT_EQ(::fcntl(writer.get(), F_SETFL, ::fcntl(writer.get(), F_GETFL) | O_APPEND), 0);
  set_nonblocking(reader.get());
  set_nonblocking(writer.get());
  char byte = 0;
  EXPECT_EQ(::read(reader.get(), &byte, 1), -1);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_NE(::fcntl(writer.get(), F_GETFL) & O_APPEND, 0) << "other flags stay";
  EXPECT_EQ(thrown_by([] { set_nonblocking(-1); }).system_errno(), EBADF);
}

TEST(Errors, NullIsOneWithOrWithoutAReason) {
  int object = 0;
  EXPECT_EQ(check_pointer(&object, "make"), &object);
  int* const none = nullptr;
  for (const int errnum : {ENOMEM, 0}) {
    const auto error = thrown_by([&] {
      errno = errnum;
      check_pointer(none, "make");
    });
    EXPECT_EQ(error.system_errno(), errnum == 0 ? EIO : errnum);
  }
}

TEST(Errors, APostThatFailsHasAKind) {
  EXPECT_TRUE(post_status(0).ok());
  EXPECT_EQ(post_status(ENOMEM), ErrorCode::full);
  EXPECT_EQ(post_status(-ENOMEM), ErrorCode::full);
  EXPECT_EQ(post_status(ENOSPC), ErrorCode::full);
  EXPECT_EQ(post_status(EINVAL), ErrorCode::invalid_value);
  EXPECT_EQ(post_status(EIO), ErrorCode::driver);
  errno = ENOMEM;
  EXPECT_EQ(post_status(-1), ErrorCode::full);
}

TEST(Errors, EveryCompletionStatusSaysWhatUsuallyCausesIt) {
  EXPECT_EQ(explain(IBV_WC_SUCCESS, 0), "success");
  EXPECT_TRUE(usual_cause(IBV_WC_SUCCESS).empty());
  for (int status = IBV_WC_LOC_LEN_ERR; status <= IBV_WC_GENERAL_ERR; ++status) {
    EXPECT_FALSE(usual_cause(static_cast<ibv_wc_status>(status)).empty()) << status;
  }
  const std::string text = explain(IBV_WC_RETRY_EXC_ERR, 0x81);
  EXPECT_NE(text.find("status 12"), std::string::npos);
  EXPECT_NE(text.find("0x81"), std::string::npos);
  EXPECT_NE(text.find("does not answer"), std::string::npos);
}

}  // namespace
}  // namespace offload::rdma
