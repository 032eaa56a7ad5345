#include "apps/client/requests/size_mix.hpp"

#include <gtest/gtest.h>

#include <string>

#include "core/error.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/thrown.hpp"

namespace offload::client {
namespace {

TEST(SizeMix, SizesWithTheirWeights) {
  const auto mix = parse_mix("64k:10,64:89.5,64:0.5").value();
  ASSERT_EQ(mix.size(), 2U);
  EXPECT_EQ(mix[0].bytes, 64U);
  EXPECT_DOUBLE_EQ(mix[0].weight, 90);
  EXPECT_EQ(mix[1].bytes, 65536U);
}

TEST(SizeMix, WhatIsNoMix) {
  for (const char* text : {"", "64", "64:", ":1", "64:0", "64:-1", "64:inf", "64:1,", "17m:1",
                           "64:1;65:1", "64:1x", " 64:1"}) {
    EXPECT_FALSE(parse_mix(text)) << text;
  }
}

TEST(SizeMix, BothEndsOfARangeBelongToIt) {
  EXPECT_EQ(parse_mix("0:1,16m:1000000000").value().size(), 2U);
  EXPECT_FALSE(parse_mix("64:1000000001"));
  EXPECT_FALSE(parse_mix("16777217:1"));
  std::string most;
  for (std::uint32_t bytes = 0; bytes < kMostSizes; ++bytes) {
    most += (bytes == 0 ? "" : ",") + std::to_string(bytes) + ":1";
  }
  EXPECT_EQ(parse_mix(most).value().size(), kMostSizes);
  EXPECT_EQ(parse_mix(most + ",0:1").value().size(), kMostSizes) << "the same size again";
  EXPECT_FALSE(parse_mix(most + ",1m:1"));
}

TEST(SizeMix, UniformSizesAreStepsOfTheRange) {
  const auto all = parse_uniform_sizes("1-256").value();
  ASSERT_EQ(all.size(), 256U);
  for (std::uint32_t i = 0; i < 256; ++i) EXPECT_EQ(all[i].bytes, i + 1);
  const auto most = parse_uniform_sizes("0-510").value();
  ASSERT_EQ(most.size(), 256U);
  EXPECT_EQ(most[1].bytes, 2U);
  EXPECT_EQ(most[255].bytes, 510U);
}

TEST(SizeMix, UniformSizes) {
  const auto few = parse_uniform_sizes("10-12").value();
  ASSERT_EQ(few.size(), 3U);
  EXPECT_EQ(few[1].bytes, 11U);
  const auto many = parse_uniform_sizes("0-16m").value();
  ASSERT_EQ(many.size(), 256U);
  EXPECT_EQ(many.front().bytes, 0U);
  EXPECT_EQ(many.back().bytes, kLongestMessage);
  EXPECT_EQ(parse_uniform_sizes("7-7").value().size(), 1U);
  for (const char* text : {"", "5", "5-", "-5", "6-5", "1-17m"}) {
    EXPECT_FALSE(parse_uniform_sizes(text)) << text;
  }
}

TEST(SizeMix, AFileHasASizeALine) {
  const support::TempDir directory;
  directory.write("sizes", "# from a trace\n64\n\n 1k  # long\n64\n");
  const auto mix = read_sizes_file(directory.file("sizes"));
  ASSERT_EQ(mix.size(), 2U);
  EXPECT_EQ(mix[0].weight, 2);
  EXPECT_EQ(mix[1].bytes, 1024U);
}

TEST(SizeMix, AWrongFileNamesItsLine) {
  const support::TempDir directory;
  const auto path = directory.file("sizes");
  EXPECT_EQ(support::thrown_by([&] { read_sizes_file(path); }).code(), core::ErrorCode::not_found);
  directory.write("sizes", "64\n\nsixty\n");
  EXPECT_EQ(support::thrown_by([&] { read_sizes_file(path); }).what(),
            "'" + path + "', line 3: 'sixty' is not a size from 0 to 16m");
  std::string sizes;
  for (std::uint32_t bytes = 0; bytes < kMostSizes; ++bytes) sizes += std::to_string(bytes) + '\n';
  directory.write("sizes", sizes);
  EXPECT_EQ(read_sizes_file(path).size(), kMostSizes);
  directory.write("sizes", sizes + "16m\n");
  EXPECT_EQ(support::thrown_by([&] { read_sizes_file(path); }).what(),
            "'" + path + "', line " + std::to_string(kMostSizes + 1) + ": more than " +
                std::to_string(kMostSizes) + " sizes");
  directory.write("sizes", "# nothing\n");
  EXPECT_EQ(support::thrown_by([&] { read_sizes_file(path); }).code(),
            core::ErrorCode::bad_message);
}

}  // namespace
}  // namespace offload::client
