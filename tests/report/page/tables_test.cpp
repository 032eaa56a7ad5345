#include "apps/report/page/tables.hpp"

#include <gtest/gtest.h>

#include "tests/results/sample.hpp"

namespace offload::report {
namespace {

using namespace results;

bool html_has(const std::string& html, const std::string& text) {
  return html.find(text) != std::string::npos;
}

TEST(Tables, NumbersForPeopleAndForPrograms) {
  const std::vector<Result> results = {sample_result({sample_run()})};
  const std::string html = latency_tables(list_runs(results));
  EXPECT_TRUE(html_has(html,
                       "data-run=\"1\" data-figure=\"service_time_us.max\" "
                       "data-value=\"400\">400.0</td>"))
      << html;
  EXPECT_TRUE(html_has(html, "data-figure=\"connect_time_us.p50\"")) << html;
  EXPECT_FALSE(html_has(html, "response_time_us")) << html;
  EXPECT_FALSE(html_has(throughput_table(list_runs(results)), "offered")) << "a closed loop";
}

TEST(Tables, EveryFigureOfTheThroughput) {
  report::Run run = open_loop_run();
  run.errors = {{"mismatch", 1}};
  run.unanswered_requests = 1;
  const std::vector<Result> results = {sample_result({run})};
  EXPECT_EQ(
      throughput_table(list_runs(results)),
      R"(<div class="scroll"><table><caption>Throughput</caption><thead><tr>)"
      R"(<th scope="col">run</th><th scope="col">offered /s</th><th scope="col">achieved /s</th>)"
      R"(<th scope="col">seconds</th><th scope="col">responses</th><th scope="col">valid</th>)"
      R"(<th scope="col">errors</th><th scope="col">sent GiB/s</th><th scope="col">in flight</th>)"
      R"(<th scope="col">unanswered</th><th scope="col">verdict</th></tr></thead>)"
      "\n"
      R"(<tbody><tr><th scope="row"><span class="swatch c0"></span>1</th>)"
      R"(<td data-run="1" data-figure="offered_per_second" data-value="2">2</td>)"
      R"(<td data-run="1" data-figure="rate_per_second" data-value="2">2</td>)"
      R"(<td data-run="1" data-figure="duration_seconds" data-value="2">2.00</td>)"
      R"(<td data-run="1" data-figure="operation_count" data-value="4">4</td>)"
      R"(<td data-run="1" data-figure="valid_responses" data-value="4">4</td>)"
      R"(<td class="bad" data-run="1" data-figure="errors" data-value="1">1</td>)"
      R"(<td data-run="1" data-figure="tx_data_rate_gib_s" data-value="0.5">0.500</td>)"
      R"(<td data-run="1" data-figure="in_flight.mean" data-value="1.5">1.5</td>)"
      R"(<td class="bad" data-run="1" data-figure="unanswered_requests" data-value="1">1</td>)"
      R"(<td>kept up</td></tr>)"
      "\n</tbody></table></div>\n");
}

TEST(Tables, LatenciesHaveThreeDigitsOfTheSmallest) {
  report::Run run = sample_run();
  run.service_time_us.us = {9.99, 10, 99.9, 100, 0, 0, 0, 0, 0, 1000};
  const std::vector<Result> results = {sample_result({run})};
  const std::string html = latency_tables(list_runs(results));
  for (const char* const text : {R"(service_time_us.min" data-value="9.99">9.990</td>)",
                                 R"(service_time_us.mean" data-value="10">10.00</td>)",
                                 R"(service_time_us.p50" data-value="99.9">99.90</td>)",
                                 R"(service_time_us.max" data-value="1000">1,000.0</td>)",
                                 R"(<th scope="col">p50</th><th scope="col">p90</th>)",
                                 R"(<th scope="col">p99.9</th><th scope="col">p99.99</th>)"}) {
    EXPECT_TRUE(html_has(html, text)) << text << " in " << html;
  }
  EXPECT_EQ(decimals_for(100), 1);
}

TEST(Tables, TheClientsOwnTimesAreOpenForUpToThreeRuns) {
  const auto tables_of = [](std::size_t count) {
    const std::vector<Result> results = {sample_result(std::vector(count, open_loop_run()))};
    return latency_tables(list_runs(results));
  };
  EXPECT_TRUE(html_has(tables_of(3), "<details open><summary>Of the client</summary>"));
  EXPECT_TRUE(html_has(tables_of(4), "<details><summary>Of the client</summary>"));
  EXPECT_TRUE(html_has(tables_of(1), "data-figure=\"schedule_lag_us.max\" data-value=\"4\">"));
}

TEST(Tables, AnOpenLoopBesideAClosedOne) {
  const std::vector<Result> results = {sample_result({open_loop_run()}),
                                       sample_result({sample_run()})};
  const std::string html = latency_tables(list_runs(results));
  EXPECT_TRUE(html_has(html, "data-run=\"A\" data-figure=\"response_time_us.max\"")) << html;
  EXPECT_TRUE(html_has(html, "<td>–</td>")) << html;
  EXPECT_TRUE(html_has(throughput_table(list_runs(results)), "offered"));
}

TEST(Tables, ErrorsStandOut) {
  report::Run run = sample_run();
  run.errors = {{"mismatch", 1200}};
  run.unanswered_requests = 1;
  const std::vector<Result> results = {sample_result({run})};
  const std::string html = throughput_table(list_runs(results));
  EXPECT_TRUE(html_has(html,
                       "<td class=\"bad\" data-run=\"1\" data-figure=\"errors\" "
                       "data-value=\"1200\">1,200</td>"))
      << html;
  EXPECT_TRUE(html_has(html, "data-figure=\"unanswered_requests\"")) << html;
}

TEST(Tables, KindsHaveALineEach) {
  const std::vector<Result> one = {sample_result({sample_run()})};
  EXPECT_EQ(kinds_table(list_runs(one)), "");
  report::Run run = run_of_kinds();
  run.kinds[0].name = "<b>";
  run.kinds[1].errors = {{"mismatch", 3}};
  const std::vector<Result> two = {sample_result({run, run_of_kinds()}), one[0]};
  const std::string html = kinds_table(list_runs(two));
  for (const char* const text :
       {"</span>A1 &lt;b&gt;</th>", "</span>A2 hash</th>", "<td>12346</td>",
        "data-run=\"A1 &lt;b&gt;\" data-figure=\"kind.max\" data-value=\"400\">400.0</td>",
        R"(<td class="bad" data-run="A1 hash" data-figure="kind.errors" data-value="3">3</td>)",
        "data-run=\"A2 find\" data-figure=\"kind.valid_per_second\" data-value=\"1.5\">"}) {
    EXPECT_TRUE(html_has(html, text)) << text << " in " << html;
  }
  EXPECT_FALSE(html_has(html, "B1")) << "a run of one kind";
  EXPECT_FALSE(html_has(html, "kind.p99\"")) << "too few latencies";
}

TEST(Tables, Repeats) {
  std::vector<Result> results = {sample_result({sample_run()})};
  EXPECT_EQ(repeats_table(results), "");
  results[0].repeats = {{"<b>", {5000, 4000, 6000, 0.95}}};
  const std::string html = repeats_table(results);
  EXPECT_TRUE(html_has(html, "&lt;b&gt;</th><td>5,000</td><td>4,000 to 6,000</td><td>95 %</td>"))
      << html;
}

}  // namespace
}  // namespace offload::report
