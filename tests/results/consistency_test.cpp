#include "results/consistency.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "metrics/hdr_codec.hpp"
#include "results/write_result.hpp"
#include "tests/results/sample.hpp"

namespace offload::results {
namespace {

std::string place_in(const std::function<void(Run&)>& spoil, Run run = open_loop_run()) {
  spoil(run);
  return contradiction_in(run).place;
}

TEST(Consistency, RunsOfTheClientHaveNoContradiction) {
  EXPECT_EQ(contradiction_in(sample_run()).place, "");
  EXPECT_EQ(contradiction_in(open_loop_run()).place, "");
  EXPECT_EQ(
      place_in([](results::Run& run) { run = results::Run{}, run.verdict_code = "cut_short"; }),
      "");
}

TEST(Consistency, CountsThatExceedOthers) {
  EXPECT_EQ(place_in([](results::Run& run) { run.valid_responses = 5; }), "valid_responses");
  EXPECT_EQ(place_in([](results::Run& run) { run.valid_responses = 3; }), "errors");
  EXPECT_EQ(place_in([](results::Run& run) { run.operation_count = 3; }), "valid_responses");
  EXPECT_EQ(place_in([](results::Run& run) { run.service_time_us.count = 5; }),
            "service_time_us.count");
  EXPECT_EQ(place_in([](results::Run& run) { run.service_time_us.count = 3; }), "valid_responses");
  EXPECT_EQ(place_in([](results::Run& run) { run.response_time_us->count = 5; }),
            "response_time_us.count");
  EXPECT_EQ(place_in([](results::Run& run) { run.connections = 0; }), "connections");
  EXPECT_EQ(place_in([](results::Run& run) { run.max_concurrent_messages = 0; }),
            "max_concurrent_messages");
}

TEST(Consistency, IntervalsAddUpToTheRun) {
  EXPECT_EQ(place_in([](results::Run& run) { run.intervals.pop_back(); }), "intervals");
  EXPECT_EQ(place_in([](results::Run& run) { run.intervals[0].operations = 3; }), "intervals");
  EXPECT_EQ(place_in([](results::Run& run) { run.intervals[0].valid = 1; }), "intervals");
  EXPECT_EQ(place_in([](results::Run& run) { run.intervals[0].errors = 1; }), "intervals");
  EXPECT_EQ(place_in([](results::Run& run) { run.intervals[0].service_time_us.count = 1; }),
            "intervals");
}

TEST(Consistency, RatesAreThoseOfTheCounts) {
  EXPECT_EQ(place_in([](results::Run& run) { run.io_rate_miops *= 1.01; }), "io_rate_miops");
  EXPECT_EQ(place_in([](results::Run& run) { run.io_rate_miops *= 0.9; }), "io_rate_miops");
  EXPECT_EQ(place_in([](results::Run& run) { run.duration_seconds = 0; }), "duration_seconds");
  EXPECT_EQ(place_in([](results::Run& run) { run.duration_seconds = 2.1; }), "io_rate_miops");
  EXPECT_EQ(place_in([](results::Run& run) { run.tx_bytes /= 2; }), "tx_data_rate_gib_s");
  EXPECT_EQ(place_in([](results::Run& run) { run.rx_data_rate_gib_s *= 2; }), "rx_data_rate_gib_s");
}

TEST(Consistency, WhatCameAfterTheEndIsNoPartOfTheRate) {
  EXPECT_EQ(place_in([](results::Run& run) {
              run.intervals[1].length_s = 1.1;
              EXPECT_EQ(run.connections * run.max_concurrent_messages, 32U);
              run.io_rate_miops = 1e-6;  // those of the first interval alone
            }),
            "");
}

TEST(Consistency, OnlyWhatWasInFlightCameAfterTheEnd) {
  const auto late = [](std::uint64_t in_flight) {
    return place_in([=](results::Run& run) {
      run.intervals[1].length_s = 1.1;
      run.connections = 1;
      run.max_concurrent_messages = in_flight;
      run.io_rate_miops = 1e-6;  // two of four
    });
  };
  EXPECT_EQ(late(1), "io_rate_miops");
  EXPECT_EQ(late(2), "");
}

TEST(Consistency, ALoopHasItsVerdictAndItsLatencies) {
  EXPECT_EQ(place_in([](results::Run& run) { run.verdict_code = "closed_loop"; }), "verdict.code");
  EXPECT_EQ(place_in([](results::Run& run) { run.verdict_code = "kept_up"; }, sample_run()),
            "verdict.code");
  EXPECT_EQ(place_in([](results::Run& run) { run.response_time_us.reset(); }), "response_time_us");
  EXPECT_EQ(place_in([](results::Run& run) { run.arrivals.reset(); }), "arrivals");
  EXPECT_EQ(place_in([](results::Run& run) { run.verdict_code = "cut_short"; }, sample_run()), "");
}

TEST(Consistency, KindsAddUpToTheRun) {
  const auto place = [](auto change) { return place_in(change, run_of_kinds()); };
  using Kinds = std::vector<KindFigures>;
  EXPECT_EQ(place([](results::Run&) {}), "");
  EXPECT_EQ(place([](results::Run& run) { run.kinds.pop_back(); }), "kinds");
  EXPECT_EQ(place([](results::Run& run) { run.kinds[1].name = "find"; }), "kinds");
  for (const auto change :
       {+[](Kinds& kinds) { ++kinds[0].operation_count; },
        +[](Kinds& kinds) { --kinds[0].valid_responses; },
        +[](Kinds& kinds) { ++kinds[1].connections; },
        +[](Kinds& kinds) { ++kinds[1].service_time_us.count; },
        +[](Kinds& kinds) { kinds[1].response_time_us = kinds[1].service_time_us; },
        +[](Kinds& kinds) {  // whose sum is right
          kinds[0].valid_responses = 4;
          kinds[1].valid_responses = 0;
        }}) {
    EXPECT_EQ(place([=](results::Run& run) { change(run.kinds); }), "kinds");
  }
}

TEST(Consistency, StatisticsAreThoseOfTheHistogram) {
  const Latency good = latency_of({100, 200, 300, 400, 500, 600, 700, 800, 900, 1000});
  const metrics::LatencyHistogram histogram = metrics::decode_hdr(good.histogram);
  EXPECT_EQ(contradiction_in(good, histogram).place, "");
  for (std::size_t i = 0; i < kStatisticNames.size(); ++i) {
    for (const double factor : {0.5, 0.9, 1.1, 2.0}) {
      Latency wrong = good;
      wrong.us[i] *= factor;
      const bool has = good.has(static_cast<Statistic>(i));
      EXPECT_EQ(contradiction_in(wrong, histogram).place, has ? kStatisticNames[i] : "");
    }
  }
  Latency more = good;
  ++more.count;
  EXPECT_EQ(contradiction_in(more, histogram).place, "histogram");
  IntervalLatency interval{500, 0, 500, good.histogram, 10};
  EXPECT_EQ(contradiction_in(interval, histogram).place, "max");
  interval = {0, 0, 1000, good.histogram, 10};
  EXPECT_EQ(contradiction_in(interval, histogram).place, "p50");
}

TEST(Consistency, ResponsesThatAreNotValidHaveErrorsOfAnyKind) {
  const auto place = [](std::uint64_t mismatches) {
    return place_in([=](results::Run& run) {
      run.valid_responses = run.intervals[0].valid = 2;
      run.intervals[1].valid = 0;
      run.errors = {{"mismatch", mismatches}, {"timeout", 1}};
      run.intervals[1].errors = mismatches + 1;
    });
  };
  EXPECT_EQ(place(1), "");
  EXPECT_EQ(place(0), "errors");
}

TEST(Consistency, ARunWithoutResponsesHasNoContradiction) {
  EXPECT_EQ(place_in([](results::Run& run) {
              run = results::Run{};
              run.arrivals = "constant";
              run.response_time_us = Latency{};
              run.verdict_code = "kept_up";
            }),
            "");
}

TEST(Run, ErrorsOfAllKindsAreCounted) {
  results::Run run;
  run.errors = {{"mismatch", 3}, {"timeout", 2}};
  EXPECT_EQ(run.error_count(), 5U);
}

TEST(Run, IsMeasuredAfterItsWarmUp) {
  results::Run run;
  run.started_at_unix_s = 100;
  run.warmup_seconds = 2;
  run.duration_seconds = 5;
  EXPECT_EQ(run.measured_from(), 102);
  EXPECT_EQ(run.measured_until(), 107);
}

TEST(Latency, AStatisticNeedsItsFewestSamples) {
  for (std::size_t i = 0; i < kStatisticNames.size(); ++i) {
    Latency latency;
    IntervalLatency interval;
    EXPECT_FALSE(latency.has(static_cast<Statistic>(i)));
    latency.count = interval.count = kFewestSamples.at(i) - 1;
    EXPECT_FALSE(latency.has(static_cast<Statistic>(i))) << i;
    EXPECT_FALSE(interval.has(static_cast<Statistic>(i))) << i;
    latency.count = interval.count = kFewestSamples.at(i);
    EXPECT_TRUE(latency.has(static_cast<Statistic>(i))) << i;
    EXPECT_TRUE(interval.has(static_cast<Statistic>(i))) << i;
  }
}

TEST(Latency, OfAnIntervalIsThatOfItsHistogram) {
  metrics::LatencyHistogram histogram;
  for (int us = 1; us <= 100; ++us) histogram.record(std::chrono::microseconds(us));
  const IntervalLatency latency = IntervalLatency::of(histogram);
  EXPECT_NEAR(latency.p50, 50, 1);
  EXPECT_NEAR(latency.p99, 99, 1);
  EXPECT_EQ(latency.max, 100);
  EXPECT_EQ(latency.count, 100U);
}

TEST(Consistency, AMedianLiesWithinItsInterval) {
  EXPECT_EQ(contradiction_in(RepeatEstimate{2, 1, 3}).place, "");
  EXPECT_EQ(contradiction_in(RepeatEstimate{1, 1, 1}).place, "");
  EXPECT_EQ(contradiction_in(RepeatEstimate{0.9, 1, 3}).place, "median");
  EXPECT_EQ(contradiction_in(RepeatEstimate{3.1, 1, 3}).place, "median");
}

}  // namespace
}  // namespace offload::results
