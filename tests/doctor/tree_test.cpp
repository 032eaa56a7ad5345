#include "apps/doctor/tree.hpp"

#include <gtest/gtest.h>

#include "tests/doctor/made_up_machine.hpp"

namespace offload::doctor {
namespace {

TEST(Tree, ReadsBelowItsRoot) {
  const MadeUpMachine machine{};
  machine.write("/sys/a", "12\n");
  machine.write("/sys/b", " x \n");
  machine.write("/sys/c/d", "");
  const Tree tree = machine.tree();
  EXPECT_EQ(tree.read("/sys/a"), "12");
  EXPECT_EQ(tree.number("/sys/a"), 12);
  EXPECT_EQ(tree.number("/sys/b"), std::nullopt);
  EXPECT_EQ(tree.read_bytes("/sys/b"), " x \n");
  EXPECT_EQ(tree.read("/sys/c/d"), "");
  EXPECT_EQ(tree.names("/sys"), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_TRUE(tree.has("/sys/c"));
}

TEST(Tree, WhatIsNotThereIsNothing) {
  const MadeUpMachine machine{};
  machine.write("/sys/a", "");
  const Tree tree = machine.tree();
  EXPECT_EQ(tree.read("/sys"), std::nullopt);  // a folder
  EXPECT_EQ(tree.read("/proc/x"), std::nullopt);
  EXPECT_EQ(tree.read_bytes("/proc/x"), "");
  EXPECT_TRUE(tree.names("/proc").empty());
  EXPECT_FALSE(tree.has("/proc"));
}

TEST(Tree, ThisMachineHasAKernel) {
  EXPECT_TRUE(Tree("").read("/proc/sys/kernel/osrelease").has_value());
}

}  // namespace
}  // namespace offload::doctor
