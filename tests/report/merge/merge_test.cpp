#include "apps/report/merge/merge.hpp"

#include <gtest/gtest.h>

#include "results/read_result.hpp"
#include "results/write_result.hpp"
#include "tests/results/sample.hpp"
#include "tests/support/thrown.hpp"

namespace offload::report {
namespace {

using namespace results;

std::string merge_refusal(const std::vector<Result>& results) {
  const auto error = support::thrown_by([&] { merge(results); });
  EXPECT_EQ(error.code(), core::ErrorCode::invalid_value);
  EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
  return error.what();
}

/// Returns a run of another host: half a second later, with slower responses.
report::Run other_run() {
  report::Run run = sample_run(0.5);
  run.service_time_us = latency_of({500, 600, 700, 800});
  run.intervals = {interval_of(0, 1, {500, 600}), interval_of(1, 1, {700, 800})};
  return run;
}

TEST(Merge, AddsCountersAndComputesRatesAnew) {
  Result one = sample_result({sample_run()}, "host-1");
  Result other = sample_result({other_run()}, "host-2");
  one.runs[0].errors = {{"mismatch", 1}};
  other.runs[0].errors = {{"mismatch", 2}};
  other.runs[0].connections = 3;
  one.runs[0].max_concurrent_messages = 8;
  other.runs[0].operation_count = 6;
  other.runs[0].valid_responses = 3;
  one.runs[0].unanswered_requests = 1;
  other.runs[0].unanswered_requests = 2;
  one.runs[0].tx_bytes = 10;
  other.runs[0].tx_bytes = 20;
  one.runs[0].rx_bytes = 100;
  other.runs[0].rx_bytes = 200;
  other.runs[0].in_flight_mean = 4;
  other.runs[0].in_flight_by_littles_law = 5;
  const Merged merged = merge({one, other});
  const report::Run& run = merged.result.runs.at(0);
  EXPECT_EQ(run.operation_count, 10U);
  EXPECT_EQ(run.connections, 5U);
  EXPECT_EQ(run.max_concurrent_messages, 16U);
  EXPECT_EQ(run.valid_responses, 7U);
  EXPECT_EQ(run.unanswered_requests, 3U);
  EXPECT_EQ(run.tx_bytes, 30U);
  EXPECT_EQ(run.rx_bytes, 300U);
  EXPECT_DOUBLE_EQ(run.duration_seconds, 2.5);
  EXPECT_DOUBLE_EQ(run.io_rate_miops, 10 / 2.5 / 1e6);
  EXPECT_DOUBLE_EQ(run.tx_data_rate_gib_s, 2 / 2.5);
  EXPECT_DOUBLE_EQ(run.rx_data_rate_gib_s, 2 / 2.5);
  EXPECT_DOUBLE_EQ(run.tx_wire_rate_gib_s.value_or(0), 30.0 / (1U << 30) / 2.5);
  EXPECT_DOUBLE_EQ(run.rx_wire_rate_gib_s.value_or(0), 300.0 / (1U << 30) / 2.5);
  EXPECT_DOUBLE_EQ(run.in_flight_mean, (1.5 + 4) * 2 / 2.5) << "each was there 2 of 2.5 seconds";
  EXPECT_DOUBLE_EQ(run.in_flight_by_littles_law, (1.5 + 5) * 2 / 2.5);
  EXPECT_EQ(run.errors, (decltype(run.errors){{"host-1: mismatch", 1}, {"host-2: mismatch", 2}}));
  EXPECT_EQ(merged.result.machine.host, "host-1, host-2");
  EXPECT_EQ(merged.result.machine.processors, 16U);
  ASSERT_EQ(merged.warnings.size(), 1U);
  EXPECT_EQ(merged.warnings[0],
            "in run 1 all were measured together for 60 % of the time: the rates are for the "
            "whole time");
}

TEST(Merge, ErrorsOfTwoProcessesOfOneHostAreAddedUp) {
  Result one = sample_result({sample_run()}, "host-1");
  Result other = sample_result({other_run()}, "host-1");
  one.runs[0].errors = {{"closed", 4}, {"mismatch", 1}};
  other.runs[0].errors = {{"mismatch", 2}};
  EXPECT_EQ(merge({one, other}).result.runs.at(0).errors,
            (decltype(report::Run::errors){{"host-1: closed", 4}, {"host-1: mismatch", 3}}));
}

TEST(Merge, PercentilesAreThoseOfAllLatencies) {
  const report::Run run =
      merge({sample_result({sample_run()}, "a"), sample_result({other_run()}, "b")}).result.runs[0];
  const Latency all = latency_of({100, 200, 300, 400, 500, 600, 700, 800});
  EXPECT_EQ(run.service_time_us.count, 8U);
  EXPECT_EQ(run.service_time_us.histogram, all.histogram);
  EXPECT_NEAR(run.service_time_us.at(Statistic::p50), 400, 2);
  EXPECT_EQ(run.service_time_us.at(Statistic::max), 800);
  EXPECT_DOUBLE_EQ(run.service_time_us.at(Statistic::mean), (all.at(Statistic::mean) * 8) / 8);
  EXPECT_FALSE(run.response_time_us);
}

/// run_of_kinds() of another host: half a second later, with the kinds in another order.
report::Run other_run_of_kinds() {
  report::Run run = other_run();
  run.kinds = {kind_of("hash", 12346, {600}), kind_of("find", 12345, {500, 700, 800})};
  return run;
}

TEST(Merge, EachKindHasTheLatenciesOfThatKind) {
  Result one = sample_result({run_of_kinds()}, "a");
  Result other = sample_result({other_run_of_kinds()}, "b");
  one.runs[0].kinds[1].errors = {{"mismatch", 1}};
  other.runs[0].kinds[0].errors = {{"mismatch", 2}};
  const report::Run run = merge({one, other}).result.runs[0];
  ASSERT_EQ(run.kinds.size(), 2U);
  const KindFigures& find = run.kinds[0];
  EXPECT_EQ(find.name, "find");
  EXPECT_EQ(find.port, 12345U);
  EXPECT_EQ(find.connections, 2U);
  EXPECT_EQ(find.operation_count, 6U);
  EXPECT_EQ(find.valid_responses, 6U);
  EXPECT_DOUBLE_EQ(find.share, 0.5);
  EXPECT_DOUBLE_EQ(find.valid_per_second, 6 / 2.5);
  EXPECT_EQ(find.service_time_us.histogram, latency_of({100, 300, 400, 500, 700, 800}).histogram);
  EXPECT_EQ(find.service_time_us.at(Statistic::max), 800);
  EXPECT_FALSE(find.response_time_us);
  EXPECT_EQ(run.kinds[1].service_time_us.histogram, latency_of({200, 600}).histogram);
  EXPECT_EQ(run.kinds[1].errors, (Counts{{"a: mismatch", 1}, {"b: mismatch", 2}}));
}

TEST(Merge, KindsOfOpenLoopsAddWhatTheyOffered) {
  std::vector<Result> results;
  for (const double begun_s : {0.0, 0.1}) {
    report::Run run = open_loop_run(begun_s);
    run.kinds = run_of_kinds().kinds;
    for (KindFigures& kind : run.kinds) {
      kind.offered_per_second = kind.name == "find" ? 1.5 : 0.5;
      kind.response_time_us = kind.service_time_us;
    }
    results.push_back(sample_result({run}, begun_s == 0 ? "a" : "b"));
  }
  const Result merged = merge(results).result;
  const KindFigures& find = merged.runs[0].kinds[0];
  EXPECT_EQ(find.offered_per_second, 3);
  EXPECT_DOUBLE_EQ(find.share, 0.75);
  EXPECT_EQ(find.response_time_us->count, 6U);
  const Result again = parse_result(result_text(merged), "merged.json");
  EXPECT_EQ(again.runs[0].kinds[0].service_time_us.count, 6U);
}

TEST(Merge, RefusesOtherKinds) {
  const Result one = sample_result({run_of_kinds()}, "a");
  const auto refusal = [&](auto change) {
    report::Run run = other_run_of_kinds();
    change(run.kinds);
    return merge_refusal({one, sample_result({run}, "b")});
  };
  using Kinds = std::vector<KindFigures>;
  EXPECT_EQ(refusal([](Kinds& kinds) { kinds[0].name = "sum"; }),
            "'a.json' and 'b.json' have different kinds of requests in run 1: find at port 12345, "
            "hash at port 12346 and find at port 12345, sum at port 12346");
  EXPECT_NE(refusal([](Kinds& kinds) { kinds[0].port = 7; }).find("hash at port 7"),
            std::string::npos);
  EXPECT_NE(refusal([](Kinds& kinds) { kinds.clear(); }).find("and one kind"), std::string::npos);
}

TEST(Merge, OpenLoopsAddWhatTheyOffered) {
  const report::Run run =
      merge({sample_result({open_loop_run()}, "a"), sample_result({open_loop_run(0.01)}, "b")})
          .result.runs[0];
  EXPECT_EQ(run.offered_per_second, 4);
  EXPECT_EQ(run.arrivals, "constant");
  EXPECT_EQ(run.response_time_us->count, 8U);
  EXPECT_EQ(run.schedule_lag_us->count, 8U);
}

TEST(Merge, TheWorstStatusAndVerdictStand) {
  Result late = sample_result({open_loop_run(0.01)}, "b");
  late.runs[0].verdict_code = "client_late";
  late.runs[0].verdict_text = "it was late";
  late.status = "failed";
  late.faults = {"no response"};
  const Result merged = merge({sample_result({open_loop_run()}, "a"), late}).result;
  EXPECT_EQ(merged.status, "failed");
  EXPECT_EQ(merged.faults, (std::vector<std::string>{"b: no response"}));
  EXPECT_EQ(merged.runs[0].verdict_code, "client_late");
  EXPECT_EQ(merged.runs[0].verdict_text, "b: it was late; 1 of 2 processes have this verdict");
}

TEST(Merge, TheWorstStatusIsThatOfTheWhole) {
  const auto status_of = [](const std::vector<std::string>& each) {
    std::vector<Result> results;
    for (const std::string& status : each) {
      results.push_back(sample_result({sample_run()}, "h" + std::to_string(results.size())));
      results.back().status = status;
    }
    return merge(results).result.status;
  };
  EXPECT_EQ(status_of({"ok", "ok"}), "ok");
  EXPECT_EQ(status_of({"ok", "interrupted"}), "interrupted");
  EXPECT_EQ(status_of({"interrupted", "ok", "ok"}), "interrupted");
  EXPECT_EQ(status_of({"interrupted", "failed"}), "failed");
  EXPECT_EQ(status_of({"failed", "interrupted", "ok"}), "failed");
  EXPECT_EQ(status_of({"ok", "interrupted", "failed"}), "failed");
}

TEST(Merge, AHostIsPutInFrontOnce) {
  Result one = sample_result({sample_run()}, "a");
  Result other = sample_result({sample_run()}, "b, c");
  one.faults = {"thread 1: no response", "b: no response"};
  other.faults = {"c: no response", "b: no response", "no response"};
  EXPECT_EQ(merge({one, other}).result.faults,
            (std::vector<std::string>{"a: thread 1: no response", "a: b: no response",
                                      "c: no response", "b: no response", "b, c: no response"}));
}

TEST(Merge, OfOneResultIsThatResult) {
  const Result merged = merge({sample_result({sample_run()}, "a")}).result;
  EXPECT_EQ(merged.runs.at(0).verdict_text, "a: the server set the rate");
  EXPECT_EQ(merged.options, sample_result({}).options);
}

TEST(Merge, MachinesThatDifferAreListed) {
  Result one = sample_result({sample_run()}, "a");
  Result other = sample_result({sample_run(0.1)}, "b");
  const Result again = sample_result({sample_run(0.2)}, "a");
  other.version = "0.2.0";
  other.revision = "1234567";
  other.machine.system = "Linux 6.12.0 aarch64";
  other.machine.processor = "another one";
  other.machine.processors = 4;
  const Result merged = merge({one, other, again}).result;
  EXPECT_EQ(merged.version, "0.1.0, 0.2.0");
  EXPECT_EQ(merged.revision, "8ce866c, 1234567");
  EXPECT_EQ(merged.machine.host, "a, b");
  EXPECT_EQ(merged.machine.system, "Linux 6.1.0 x86_64, Linux 6.12.0 aarch64");
  EXPECT_EQ(merged.machine.processor, "a processor, another one");
  EXPECT_EQ(merged.machine.processors, 12U) << "those of a host count once";
}

TEST(Merge, EachVerdictIsWorseThanThoseBeforeIt) {
  const std::vector<std::string> codes = {"kept_up", "too_few", "server_late", "client_late",
                                          "cut_short"};
  for (std::size_t i = 0; i < codes.size(); ++i) {
    for (std::size_t j = 0; j < codes.size(); ++j) {
      Result one = sample_result({open_loop_run()}, "a");
      Result other = sample_result({open_loop_run(0.01)}, "b");
      one.runs[0].verdict_code = codes[i];
      other.runs[0].verdict_code = codes[j];
      EXPECT_EQ(merge({one, other}).result.runs[0].verdict_code, codes[std::max(i, j)]);
    }
  }
}

TEST(Merge, TheVerdictOfManyIsOneSentence) {
  std::vector<Result> results;
  for (int i = 0; i < 50; ++i) {
    results.push_back(sample_result({sample_run(0.001 * i)}, "host" + std::to_string(i)));
  }
  const Result merged = merge(results).result;
  EXPECT_EQ(merged.runs[0].verdict_code, "closed_loop");
  EXPECT_EQ(merged.runs[0].verdict_text,
            "host0: the server set the rate; 50 of 50 processes have this verdict");
}

TEST(Merge, ARunWithARunAndTheRepeatsAnew) {
  Result one = sample_result({sample_run(), sample_run(20), sample_run(40)}, "a");
  Result other = sample_result({sample_run(0.1), sample_run(20.1), sample_run(40.1)}, "b");
  one.repeats = {{"io_rate_miops", {}}, {"service_time_us.max", {}}, {"unknown", {}}};
  const Result merged = merge({one, other}).result;
  ASSERT_EQ(merged.runs.size(), 3U);
  EXPECT_DOUBLE_EQ(merged.runs[2].started_at_unix_s, sample_run(40).started_at_unix_s);
  ASSERT_EQ(merged.repeats.size(), 2U);
  EXPECT_DOUBLE_EQ(merged.repeats[0].second.median, merged.runs[0].io_rate_miops);
  EXPECT_EQ(merged.repeats[1].second.median, 400);
  EXPECT_EQ(merged.repeats[1].second.confidence, 0.95);
}

TEST(Merge, OptionsThatDifferHaveAllValues) {
  const Result one = sample_result({sample_run()}, "a");
  Result other = sample_result({sample_run(0.1)}, "b");
  other.options[2].second = "\"echo\"";
  const Result merged = merge({one, other}).result;
  EXPECT_EQ(merged.options[0].second, "2.0");
  EXPECT_EQ(merged.options[2].second, "\"reverse\" | \"echo\"");
  EXPECT_EQ(merged.command_line.size(), 11U);
  EXPECT_EQ(merged.command_line[5], "&");
}

TEST(Merge, IsAResultAgainThatMerges) {
  const Result merged =
      merge({sample_result({open_loop_run()}, "a"), sample_result({open_loop_run(0.1)}, "b")})
          .result;
  const Result again = parse_result(result_text(merged), "merged.json");
  const Result three = merge({again, sample_result({open_loop_run(0.2)}, "c")}).result;
  EXPECT_EQ(three.runs[0].operation_count, 12U);
  EXPECT_EQ(three.runs[0].offered_per_second, 6);
}

// The one that began first was measured last, as its warm-up is longer.
TEST(Merge, TheWarmUpEndsWhereTheFirstIsMeasured) {
  report::Run early = sample_run();
  early.warmup_seconds = 3;
  report::Run late = sample_run(2);
  late.warmup_seconds = 0.5;
  for (const bool is_first : {true, false}) {
    const Result one = sample_result({is_first ? early : late}, "a");
    const Result other = sample_result({is_first ? late : early}, "b");
    const report::Run merged = merge({one, other}).result.runs.at(0);
    EXPECT_DOUBLE_EQ(merged.started_at_unix_s, early.started_at_unix_s);
    EXPECT_DOUBLE_EQ(merged.warmup_seconds, 2.5);
    EXPECT_DOUBLE_EQ(merged.duration_seconds, 2.5);
  }
}

TEST(Merge, HalfASecondInCommonIsEnough) {
  const auto merged =
      merge({sample_result({sample_run()}, "a"), sample_result({sample_run(1.5)}, "b")});
  EXPECT_DOUBLE_EQ(merged.result.runs.at(0).duration_seconds, 3.5);
  EXPECT_EQ(merged.warnings.size(), 1U);
}

TEST(Merge, RefusesWhatDidNotRunTogether) {
  EXPECT_EQ(
      merge_refusal({sample_result({sample_run()}, "a"), sample_result({sample_run(7)}, "b")}),
      "'a.json' and 'b.json' did not overlap in time in run 1: one ended 5.000 s before the "
      "other began");
  EXPECT_NE(
      merge_refusal({sample_result({sample_run()}, "a"), sample_result({open_loop_run()}, "b")})
          .find("different loads in run 1: a closed loop and an open loop"),
      std::string::npos);
  report::Run poisson = open_loop_run();
  poisson.arrivals = "poisson";
  EXPECT_NE(merge_refusal({sample_result({open_loop_run()}, "a"), sample_result({poisson}, "b")})
                .find("different loads"),
            std::string::npos);
  EXPECT_NE(merge_refusal({sample_result({sample_run()}, "a"), sample_result({}, "b")})
                .find("have 1 and 0 runs"),
            std::string::npos);
  Result search = sample_result({sample_run()}, "b");
  search.is_search = true;
  EXPECT_NE(merge_refusal({sample_result({sample_run()}, "a"), search}).find("search"),
            std::string::npos);
  EXPECT_NE(merge_refusal({sample_result({sample_run()}, "a"), sample_result({sample_run()}, "a")})
                .find("are the same result"),
            std::string::npos);
}

}  // namespace
}  // namespace offload::report
