#include "apps/report/vocabulary.hpp"

#include <gtest/gtest.h>

namespace offload::report {
namespace {

/// 10 s of an open loop of 1,000 /s are 10,000 requests: nine tenths, less five of their square
/// roots, are 8,500.
TEST(Vocabulary, FarFewerResponsesThanOfferedAreAServerThatWasLate) {
  report::Run run;
  run.offered_per_second = 1000;
  run.duration_seconds = 10;
  run.warmup_seconds = 5;  // what was due then does not count
  run.verdict_code = "kept_up";
  run.verdict_text = "the server kept up";
  run.io_rate_miops = 850.1e-6;
  EXPECT_EQ(verdict_code_of(run), "kept_up");
  EXPECT_EQ(verdict_text_of(run), "the server kept up");
  EXPECT_EQ(severity_of(run), 0);
  run.io_rate_miops = 849.9e-6;
  EXPECT_EQ(verdict_code_of(run), "server_late");
  EXPECT_EQ(verdict_text_of(run), "offered 1000.0/s, achieved 849.9/s: the server was late");
  EXPECT_EQ(severity_of(run), 2);
}

TEST(Vocabulary, AClosedLoopOffersNothingThatItCouldFallShortOf) {
  report::Run run;
  run.duration_seconds = 100;
  EXPECT_FALSE(falls_short(run));
}

TEST(Vocabulary, AHundredResponsesAreEnough) {
  report::Run run;
  run.service_time_us.count = 99;
  EXPECT_TRUE(has_few_responses(run));
  run.service_time_us.count = 100;
  EXPECT_FALSE(has_few_responses(run));
}

}  // namespace
}  // namespace offload::report
