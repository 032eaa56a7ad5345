#include "net/backlog.hpp"

#include <gtest/gtest.h>

#include "tests/support/bytes.hpp"

namespace offload::net {
namespace {

using support::bytes_of;
using support::copy_of;

TEST(Backlog, KeepsWhatWasNotTakenInOrder) {
  Backlog backlog;
  EXPECT_TRUE(backlog.empty());
  EXPECT_TRUE(backlog.bytes().empty());
  backlog.append(bytes_of("hello "));
  backlog.append(bytes_of("world"));
  EXPECT_FALSE(backlog.empty());
  backlog.consume(3);
  EXPECT_EQ(copy_of(backlog.bytes()), copy_of(bytes_of("lo world")));
  backlog.append(bytes_of("!"));
  EXPECT_EQ(copy_of(backlog.bytes()), copy_of(bytes_of("lo world!")));
}

TEST(Backlog, IsEmptyOnceAllIsTaken) {
  Backlog backlog;
  backlog.append(bytes_of("hello"));
  backlog.consume(4);
  EXPECT_FALSE(backlog.empty());
  backlog.consume(1);
  EXPECT_TRUE(backlog.empty());
  backlog.append(bytes_of("again"));
  EXPECT_EQ(copy_of(backlog.bytes()), copy_of(bytes_of("again")));
}

TEST(Backlog, OfNothingIsNone) {
  Backlog backlog;
  backlog.append({});
  EXPECT_TRUE(backlog.empty());
}

TEST(Backlog, CanBeGivenUp) {
  Backlog backlog;
  backlog.append(bytes_of("hello"));
  backlog.consume(2);
  backlog.clear();
  EXPECT_TRUE(backlog.empty());
  EXPECT_TRUE(backlog.bytes().empty());
}

}  // namespace
}  // namespace offload::net
