#include "apps/report/compare/threshold.hpp"

#include <gtest/gtest.h>

namespace offload::report {
namespace {

TEST(Threshold, EveryFigure) {
  for (const char* const name :
       {"rate", "errors", "mean", "p50", "p90", "p95", "p99", "p99.9", "p99.99", "max"}) {
    const auto figure = figure_named(name);
    ASSERT_TRUE(figure) << name;
    EXPECT_EQ(name_of(*figure), name);
  }
  for (const char* const name : {"", "min", "p99_9", "p100", "P99", "Rate", "p99.999"}) {
    EXPECT_FALSE(figure_named(name)) << name;
  }
}

TEST(Threshold, Expressions) {
  const auto above = parse_threshold("p99 > 1.2");
  ASSERT_TRUE(above);
  EXPECT_TRUE(above->above);
  EXPECT_EQ(above->figure.statistic, Statistic::p99);
  EXPECT_EQ(above->bound, 1.2);
  EXPECT_EQ(above->text, "p99>1.2");
  const auto below = parse_threshold("rate<0.9");
  ASSERT_TRUE(below);
  EXPECT_FALSE(below->above);
  EXPECT_EQ(parse_threshold("errors>0")->bound, 0);
  EXPECT_EQ(parse_threshold("errors>1e9")->bound, 1e9);
  EXPECT_FALSE(parse_threshold("errors>1000000001"));
}

TEST(Threshold, RefusesAllElse) {
  for (const char* const text :
       {"", "p99", "p99>", ">1", "p99=1", "p99>=1", "p99>1x", "p99>-1", "p99>0", "p99>nan",
        "p99>inf", "p99>1e300", "p99>1>2", "p99 1", "min>1", "rate>\n1"}) {
    EXPECT_FALSE(parse_threshold(text)) << text;
  }
}

}  // namespace
}  // namespace offload::report
