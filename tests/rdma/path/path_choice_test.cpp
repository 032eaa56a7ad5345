#include "rdma/path/path_choice.hpp"

#include <gtest/gtest.h>

#include <initializer_list>
#include <optional>
#include <vector>

#include "cli/options.hpp"

namespace offload::rdma {
namespace {

/// Returns the choice of a command line; nothing if it is refused.
std::optional<PathChoice> parse(std::initializer_list<const char*> words) {
  PathChoice choice;
  cli::CommandLine line("program", "");
  add_path_options(line, choice);
  std::vector<const char*> all{"program"};
  all.insert(all.end(), words);
  if (line.parse(static_cast<int>(all.size()), all.data())) return std::nullopt;
  return choice;
}

TEST(PathChoiceTest, NothingIsChosenUnlessItIsSaid) {
  EXPECT_EQ(parse({}), PathChoice{});
}

TEST(PathChoiceTest, NumbersAreDecimalOrHexadecimal) {
  const auto choice = parse(
      {"--gid-index", "3", "--traffic-class", "106", "--service-level", "2", "--pkey", "0x8001"});
  EXPECT_EQ(choice, (PathChoice{{}, 3, 106, 2, 0x8001}));
  EXPECT_EQ(parse({"--traffic-class", "0x6a"})->traffic_class, 106);
}

TEST(PathChoiceTest, WhatNoPathCanHaveIsRefused) {
  for (const auto* const option : {"--gid-index", "--traffic-class"}) {
    EXPECT_TRUE(parse({option, "255"}));
    EXPECT_FALSE(parse({option, "256"}));
  }
  EXPECT_FALSE(parse({"--service-level", "16"}));
  for (const auto* const pkey : {"0", "0x10000", "65536", "-1", "0x", "8001x", ""}) {
    EXPECT_FALSE(parse({"--pkey", pkey})) << pkey;
  }
}

}  // namespace
}  // namespace offload::rdma
