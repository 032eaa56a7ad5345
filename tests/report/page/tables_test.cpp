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
