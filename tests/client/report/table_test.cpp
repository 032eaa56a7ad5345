#include "apps/client/report/table.hpp"

#include <gtest/gtest.h>

#include "tests/client/report/sample_campaign.hpp"

namespace offload::client {
namespace {

void expect_in(const std::string& table, const std::string& line) {
  EXPECT_NE(table.find(line + "\n"), std::string::npos) << line << "\n--\n" << table;
}

TEST(Table, HasTheReferencesWords) {
  const auto table = make_table(sample_run(false));
  expect_in(table, "Duration (seconds):       2.000000");
  expect_in(table, "Operation count:          3");
  expect_in(table, "Tx Data rate (GiB/s):     2.000000");
  expect_in(table, "Rx Data rate (GiB/s):     1.500000");
  expect_in(table, "IO rate (MIOP/s):         0.000002");
  expect_in(table, "Valid responses:          2");
  expect_in(
      table,
      "Wire rate (GiB/s):        sent 2.000000, received 1.500000, with the headers of frames");
  expect_in(table, "Unanswered requests:      1");
  expect_in(table, "Errors:                   mismatch 1");
  expect_in(table, "Verdict:                  fine");
}

TEST(Table, NamesTheVerification) {
  RunResult run = sample_run(false);
  EXPECT_EQ(make_table(run).find("Verification"), std::string::npos);
  run.verification = "builtin (service reverse)";
  expect_in(make_table(run), "Verification:             builtin (service reverse)");
}

TEST(Table, AClosedLoopHasTheServiceTimeAlone) {
  const auto table = make_table(sample_run(false));
  expect_in(table, "Latency (us)                service time");
  expect_in(table, "  min                            100.000");
  expect_in(table, "  max                           1000.000");
  EXPECT_EQ(table.find("response time"), std::string::npos);
}

TEST(Table, AnOpenLoopHasBothSideBySide) {
  const auto table = make_table(sample_run(true));
  expect_in(table, "Latency (us)                service time   response time");
  expect_in(table, "  min                            100.000         600.000");
  expect_in(table, "  max                           1000.000        1500.000");
}

TEST(Table, APercentileNeedsLatenciesBeyondIt) {
  const std::string dash = "                                  -";
  RunResult run = sample_run(false);
  EXPECT_EQ(make_table(run).find("  p50" + dash), std::string::npos);
  expect_in(make_table(run), "  p90" + dash);
  while (run.total->service.count() < 100) {
    run.total->service.record(std::chrono::microseconds(200));
  }
  EXPECT_EQ(make_table(run).find("  p99" + dash), std::string::npos);
  expect_in(make_table(run), "  p99.9" + dash.substr(2));
  run.total = std::make_unique<Interval>();
  expect_in(make_table(run), "  max" + dash);
}

TEST(Table, SaysHowManyRequestsHaveNoLatency) {
  RunResult run = sample_run(false);
  expect_in(make_table(run), "Not in the latencies:     2 requests without a right response");
  run.unanswered = 0;
  run.total->answered = run.total->service.count();
  EXPECT_EQ(make_table(run).find("Not in"), std::string::npos);
  EXPECT_EQ(make_line(run).find("without"), std::string::npos) << make_line(run);
}

TEST(Table, ALineForEachOfSeveralRuns) {
  EXPECT_EQ(
      make_line(sample_run(true)),
      "    16 in flight         2.0/s offered           1.0/s valid   response time p50   "
      "600.064  p99         -  p99.9         - us without 2 requests   mismatch 1   kept_up\n");
  EXPECT_NE(make_line(sample_run(true), Search{"p50", 0.5, {}}).find("p50   600.064 us"),
            std::string::npos);
  EXPECT_EQ(make_line(sample_run(false))
                .rfind("    16 in flight           1.0/s valid   service time p50   100.", 0),
            0U)
      << make_line(sample_run(false));
}

TEST(Table, LinesOfNothingAreLeftOut) {
  RunResult run = sample_run(true);
  EXPECT_EQ(make_table(run).find("Schedule lag"), std::string::npos);
  run.total->lag.record(std::chrono::microseconds(30));
  expect_in(make_table(run), "Schedule lag (us):        p50 30.000, p99 -, max 30.000");
  expect_in(make_table(run), "Connect time (us):        p50 70.000, p99 -, max 70.000");
  run.unanswered = 0;
  EXPECT_EQ(make_table(run).find("Unanswered"), std::string::npos);
  EXPECT_EQ(make_table(run).find("Datagrams"), std::string::npos);
  EXPECT_EQ(make_table(run).find("Kind"), std::string::npos);
  EXPECT_EQ(make_table(run).find("Verification"), std::string::npos);
  run.udp = true;
  run.total->lost = 5;
  run.total->duplicates = 6;
  run.total->late_answers = 7;
  run.total->sent_again = 8;
  expect_in(make_table(run),
            "Datagrams:                4 sent, 3 answered, 5 lost, 6 duplicates, 7 late, 1 wrong, "
            "8 sent again");
}

TEST(Table, OneResponseIsEnoughForItsTime) {
  RunResult run = sample_run(false);
  run.kinds.emplace_back();
  EXPECT_NE(make_table(run).find("Kind (service time)"), std::string::npos);
  run.total->response.record(std::chrono::microseconds(200));
  EXPECT_NE(make_table(run).find("Kind (response time)"), std::string::npos);
}

TEST(Table, ALineForEachKind) {
  RunResult run = sample_run(true);
  KindResult& kind = run.kinds.emplace_back();
  kind.name = "small";
  kind.port = 77;
  kind.total->valid = 11;
  kind.total->valid_after_end = 3;
  kind.total->errors.add(ErrorKind::late, 9);
  kind.total->service.record(std::chrono::microseconds(20));
  kind.total->response.record(std::chrono::microseconds(40));
  expect_in(make_table(run),
            "Kind (response time)   port       valid/s      p50 (us)      p99 (us)    errors\n"
            "  small                  77           4.0        40.000             -         9");
}

}  // namespace
}  // namespace offload::client
