#include "apps/client/load/errors.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <map>
#include <string>

namespace offload::client {
namespace {

using protocol::Refusal;

TEST(ErrorKinds, HaveNames) {
  EXPECT_EQ(name_of(ErrorKind::mismatch), "mismatch");
  EXPECT_EQ(name_of(ErrorKind::never_connected), "never_connected");
  EXPECT_EQ(name_of(kind_of(Refusal::worker_unavailable)), "worker_unavailable");
  EXPECT_EQ(name_of(kind_of(Refusal::too_many_of_address)), "too_many_of_address");
}

TEST(ErrorKinds, CodesWithoutANameAreOneKind) {
  for (const std::uint32_t code : {0U, 15U, 31U, 200U, 0xffff'ffffU}) {
    EXPECT_EQ(name_of(kind_of(static_cast<Refusal>(code))), "unknown_refusal") << code;
  }
}

TEST(ErrorKinds, EachNamedRefusalIsAKind) {
  constexpr auto kFirst = static_cast<std::uint32_t>(ErrorKind::first_refusal);
  for (std::uint32_t code = 0; code < 300; ++code) {
    const auto refusal = static_cast<Refusal>(code);
    const bool is_kind = kFirst + code < ErrorCounts::kKinds && !protocol::name_of(refusal).empty();
    EXPECT_EQ(kind_of(refusal), static_cast<ErrorKind>(is_kind ? kFirst + code : kFirst)) << code;
  }
}

TEST(ErrorKinds, FailedConnections) {
  EXPECT_EQ(kind_of_errno(ECONNREFUSED), ErrorKind::refused);
  EXPECT_EQ(kind_of_errno(ETIMEDOUT), ErrorKind::time_out);
  EXPECT_EQ(kind_of_errno(ECONNRESET), ErrorKind::reset);
  EXPECT_EQ(kind_of_errno(EHOSTUNREACH), ErrorKind::connect_failed);
}

TEST(ErrorCounts, CountsByKind) {
  ErrorCounts one;
  EXPECT_EQ(one.total(), 0U);
  one.add(ErrorKind::closed, 3);
  ErrorCounts other;
  other.add(ErrorKind::closed);
  other.add(kind_of(Refusal::worker_failed));
  one.merge(other);
  EXPECT_EQ(one.of(ErrorKind::closed), 4U);
  EXPECT_EQ(one.total(), 5U);
  std::map<std::string, std::uint64_t> seen;
  one.for_each(
      [&](std::string_view name, std::uint64_t count) { seen[std::string(name)] = count; });
  EXPECT_EQ(seen, (std::map<std::string, std::uint64_t>{{"closed", 4}, {"worker_failed", 1}}));
}

}  // namespace
}  // namespace offload::client
