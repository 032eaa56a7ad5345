#include "memory/access.hpp"

#include <gtest/gtest.h>

#include "tests/support/memory.hpp"

namespace offload::memory {
namespace {

/// The rules, written another way than in check_access.
bool is_consistent(std::uint32_t bits) {
  const bool reads = (bits & 1U) != 0;
  const bool writes = (bits & 2U) != 0;
  const bool written_by_others = (bits & (8U | 16U)) != 0;
  return bits < 64 && reads && (writes || !written_by_others);
}

TEST(Access, IsCheckedForEverySetOfFlags) {
  for (std::uint32_t bits = 0; bits < 256; ++bits) {
    const auto access = static_cast<Access>(bits);
    if (is_consistent(bits)) {
      EXPECT_NO_THROW(check_access(access)) << bits;
    } else {
      EXPECT_EQ(code_of([&] { check_access(access); }), core::ErrorCode::invalid_value) << bits;
    }
  }
}

TEST(Access, ErrorsNameTheFlagsAndTheReason) {
  const auto error =
      support::thrown_by([] { check_access(Access::local_read | Access::remote_write); });
  EXPECT_STREQ(error.what(),
               "access local_read|remote_write: "
               "remote_write and remote_atomic require local_write");
}

TEST(Access, IncludesAllAndHasAny) {
  EXPECT_TRUE(includes(kLocalAccess, Access::local_read));
  EXPECT_FALSE(includes(Access::local_read, kLocalAccess));
  EXPECT_TRUE(includes(Access::none, Access::none));
}

TEST(Access, AsText) {
  EXPECT_EQ(to_string(Access::none), "none");
  EXPECT_EQ(to_string(kRemoteAccess), "remote_read|remote_write|remote_atomic");
}

}  // namespace
}  // namespace offload::memory
