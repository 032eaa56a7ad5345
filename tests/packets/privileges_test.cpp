#include "packets/privileges.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "tests/support/thrown.hpp"

namespace offload::packets {
namespace {

using core::ErrorCode;
using support::thrown_by;

TEST(PortErrors, SayWhatWasTriedAndWhatIsMissing) {
  struct Case {
    int errnum;
    ErrorCode code;
    const char* says;
  };
  for (const Case& one : {Case{EPERM, ErrorCode::not_permitted, "Operation not permitted"},
                          Case{EACCES, ErrorCode::not_permitted, "Permission denied"},
                          Case{ENOBUFS, ErrorCode::no_memory, "No buffer space available"},
                          Case{EAFNOSUPPORT, ErrorCode::not_supported, "this kernel has no AF_XDP"},
                          Case{EBUSY, ErrorCode::in_use, "another program has it"},
                          Case{EOPNOTSUPP, ErrorCode::not_supported, "Operation not supported"},
                          Case{ENOENT, ErrorCode::not_found, "No such file or directory"}}) {
    const auto error = thrown_by([&] { throw_port_error("trying it", one.errnum); });
    EXPECT_EQ(error.code(), one.code) << one.errnum;
    EXPECT_EQ(error.system_errno(), one.errnum);
    const std::string text = error.what();
    EXPECT_EQ(text.find("trying it: "), 0U) << text;
    EXPECT_NE(text.find(one.says), std::string::npos) << text;
  }
}

TEST(PortErrors, AreOfResultsBelowZero) {
  EXPECT_EQ(check_port(0, "trying it"), 0);
  EXPECT_EQ(check_port(7, "trying it"), 7);
  const auto error = thrown_by([] {
    errno = EBUSY;
    check_port(-1, "trying it");
  });
  EXPECT_EQ(error.code(), ErrorCode::in_use);
}

}  // namespace
}  // namespace offload::packets
