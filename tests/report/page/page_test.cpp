#include "apps/report/page/page.hpp"

#include <gtest/gtest.h>

#include "tests/results/sample.hpp"

namespace offload::report {
namespace {

using namespace results;

std::size_t times_in(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

bool page_has(const std::string& text, const std::string& part) {
  return times_in(text, part) != 0;
}

TEST(Page, IsWholeAndBeginsWithItsMarker) {
  report::Run run = open_loop_run();
  run.service_time_us.count = 100;
  const std::string page = make_page({sample_result({run})});
  EXPECT_EQ(page.rfind(std::string(kPageMarker), 0), 0U);
  EXPECT_TRUE(page.ends_with("</html>\n"));
  EXPECT_FALSE(page_has(page, "{{"));
  EXPECT_EQ(times_in(page, "<script>"), 1U);
  EXPECT_FALSE(page_has(page, "http://") && !page_has(page, "http://www.w3.org/2000/svg"));
  EXPECT_FALSE(page_has(page, "https://"));
  EXPECT_FALSE(page_has(page, " src="));
  EXPECT_TRUE(page_has(page, "no errors; 4 of 4 responses were right"));
  EXPECT_TRUE(page_has(page, "offload-client -s 10.0.0.7 -m &#39;two words&#39;"));
  EXPECT_TRUE(page_has(page, "2025-11-23 06:32:36 UTC"));
  EXPECT_TRUE(page_has(page, "<dt>service</dt><dd>reverse</dd>"));
  EXPECT_TRUE(page_has(page, "<dt>iteration_count</dt><dd>–</dd>"));
}

/// Every text of a result, as a stranger might write it.
TEST(Page, EscapesEveryText) {
  const std::string evil = "\"'><script>alert(1)</script>{{body}}";
  report::Run run = open_loop_run();
  run.verdict_text = evil;
  run.errors = {{evil, 1}};
  Result result = sample_result({run, run});
  result.file = evil;
  result.version = result.revision = evil;
  result.command_line = {evil};
  result.machine = {evil, evil, evil, 1};
  result.options = {{evil, "\"\\\"'><script>\""}};
  result.faults = {evil, std::string(1'000'000, '<')};
  result.repeats = {{evil, {1, 1, 1, 0.95}}};
  result.status = "failed";
  for (const std::string& page : {make_page({result}), make_page({result, result})}) {
    EXPECT_EQ(times_in(page, "<script"), 1U);
    EXPECT_FALSE(page_has(page, "\"'>"));
    EXPECT_LT(page.size(), 400'000U);
  }
}

TEST(Page, TheSetupOfAResult) {
  Result result = sample_result({open_loop_run()});
  EXPECT_TRUE(page_has(
      make_page({result}),
      "<div class=\"card wide\"><h3>host-1.json</h3><dl><dt>Host</dt><dd>host-1</dd>"
      "<dt>System</dt><dd>Linux 6.1.0 x86_64</dd><dt>Processors</dt><dd>8 × a processor</dd>"
      "<dt>Client</dt><dd>offload-client 0.1.0 (8ce866c)</dd>"
      "<dt>Started</dt><dd>2025-11-23 06:32:36 UTC</dd>"
      "<dt>Load</dt><dd>open loop, 2 requests /s, constant arrivals, 2 connections, 16 in flight "
      "on each</dd><dt>Duration</dt><dd>1 × 2.0 s, without warm-up</dd>"
      "<dt>Verdict</dt><dd><p>the server kept up</p></dd></dl>"
      "<pre>offload-client -s 10.0.0.7 -m &#39;two words&#39;</pre><details open>"));
  result.runs.push_back(result.runs[0]);
  result.runs[0].offered_per_second = 4000;
  result.runs[0].connections = 1;
  result.runs[0].warmup_seconds = 1.5;
  result.runs[1].max_concurrent_messages = 8;
  EXPECT_TRUE(page_has(make_page({result}),
                       "<dt>Load</dt><dd>open loop, 2 to 4,000 requests /s, constant arrivals, 1 "
                       "connection, 8 to 16 in flight on each</dd>"
                       "<dt>Duration</dt><dd>2 × 2.0 s, after 1.5 s of warm-up</dd>"));
}

TEST(Page, TheTitleNamesTheFirstFourResults) {
  const Result result = sample_result({sample_run()});
  EXPECT_TRUE(page_has(make_page({result}), "<title>Load test host-1.json</title>\n"));
  EXPECT_TRUE(page_has(make_page(std::vector(5, result)),
                       "<title>Load test A host-1.json B host-1.json C host-1.json D "
                       "host-1.json</title>\n"));
}

TEST(Page, ErrorsFirst) {
  report::Run run = sample_run();
  run.errors = {{"mismatch", 3}};
  Result failed = sample_result({run});
  failed.status = "failed";
  failed.faults = std::vector<std::string>(100, "a fault");
  const std::string page = make_page({failed});
  EXPECT_TRUE(page_has(page, "banner bad"));
  EXPECT_LT(page.find("<li>mismatch: 3</li><li>a fault</li>"), page.find("<h2>Setup</h2>"));
  EXPECT_TRUE(page_has(page, "<li>and 80 more</li>"));
  EXPECT_EQ(times_in(page, "<li>a fault</li>"), 20U);
  failed.faults = {"one fault", "another"};
  EXPECT_TRUE(page_has(make_page({failed}),
                       "<ul><li>mismatch: 3</li><li>one fault</li><li>another</li></ul>"));
}

TEST(Page, TheBannerIsTheVerdict) {
  for (const auto& [code, kind] :
       std::vector<std::pair<std::string, std::string>>{{"closed_loop", "good"},
                                                        {"kept_up", "good"},
                                                        {"too_few", "warn"},
                                                        {"server_late", "warn"},
                                                        {"client_late", "warn"},
                                                        {"cut_short", "warn"}}) {
    std::vector<report::Run> runs(3, open_loop_run());
    for (report::Run& run : runs) run.service_time_us.count = 100;
    runs[1].verdict_code = code;
    runs[1].verdict_text = "offered & achieved";
    const std::string page = make_page({sample_result(runs)});
    EXPECT_TRUE(page_has(page, "<div class=\"banner " + kind)) << code;
    EXPECT_EQ(page_has(page, "in 1 of 3 runs, such as this one: offered &amp; achieved</p>"),
              kind == "warn")
        << code;
    EXPECT_EQ(page_has(page, "no errors"), kind == "good") << code;
  }
}

TEST(Page, FewResponsesAreNotGood) {
  report::Run run = open_loop_run();
  const std::string few = make_page({sample_result({run})});
  EXPECT_TRUE(page_has(few, "<div class=\"banner warn\""));
  EXPECT_TRUE(page_has(few, "a run has only 4 right responses: 100 are needed"));
  run.service_time_us.count = 100;
  EXPECT_TRUE(page_has(make_page({sample_result({run})}), "<div class=\"banner good\""));
}

TEST(Page, AVerdictThatTheFiguresContradictIsNotGood) {
  report::Run run = open_loop_run();
  run.service_time_us.count = 100;
  run.offered_per_second = 1000;
  const std::string page = make_page({sample_result({run})});
  EXPECT_TRUE(page_has(page, "<div class=\"banner warn\""));
  EXPECT_TRUE(page_has(page, "offered 1000.0/s, achieved 2.0/s: the server was late"));
  EXPECT_TRUE(page_has(page, "<td>server late</td>"));
}

TEST(Page, LatenciesOfSurvivorsSaySo) {
  const std::string words = "latencies of the requests that were answered";
  report::Run run = sample_run();
  EXPECT_FALSE(page_has(make_page({sample_result({run})}), words));
  run.unanswered_requests = 1;
  EXPECT_TRUE(page_has(make_page({sample_result({run})}), words));
  EXPECT_TRUE(
      page_has(make_page({sample_result({run})}),
               "from the send to the response; of the requests that were answered rightly<"));
}

TEST(Page, APercentileNeedsLatenciesBeyondIt) {
  report::Run run = sample_run();
  EXPECT_TRUE(page_has(make_page({sample_result({run})}), "p99 unknown, max "));
  EXPECT_FALSE(page_has(make_page({sample_result({run})}), "service_time_us.p99\""));
  run.service_time_us.count = 100;
  EXPECT_FALSE(page_has(make_page({sample_result({run})}), "p99 unknown"));
  EXPECT_TRUE(page_has(make_page({sample_result({run})}), "service_time_us.p99\""));
  EXPECT_FALSE(page_has(make_page({sample_result({run})}), "service_time_us.p99_9\""));
}

TEST(Page, OfAnInterruptedAndAnEmptyResult) {
  Result interrupted = sample_result({sample_run()});
  interrupted.status = "interrupted";
  EXPECT_TRUE(page_has(make_page({interrupted}), "was interrupted"));
  const std::string none = make_page({sample_result({})});
  EXPECT_TRUE(page_has(none, "has no responses"));
  EXPECT_FALSE(page_has(none, "<h2>Charts</h2>"));
}

TEST(Page, AnAnswerIsTheFirstBannerAndGreenOnlyIfItIsGood) {
  const auto page_of = [](const std::string& verdict) {
    return make_page({sample_result({sample_run()})}, {{verdict, "3.1 % <slower>"}});
  };
  for (const auto& [verdict, kind] :
       std::vector<std::pair<std::string, std::string>>{{"equal", "good"},
                                                        {"faster", "good"},
                                                        {"answered", "good"},
                                                        {"slower", "bad"},
                                                        {"failed", "bad"},
                                                        {"cannot_tell", "warn"},
                                                        {"interrupted", "warn"}}) {
    const std::string page = page_of(verdict);
    const std::size_t first = page.find("<div class=\"banner ");
    EXPECT_EQ(page.find("<div class=\"banner " + kind +
                        "\" role=\"status\"><p>3.1 % &lt;slower&gt;</p></div>"),
              first)
        << verdict;
  }
  EXPECT_TRUE(page_has(make_page({}, {{"failed", "no answer"}}), "banner bad"));
}

TEST(Page, AScanHasNoMedian) {
  report::Run faster = open_loop_run();
  faster.offered_per_second = 4000;
  const std::string scan = make_page({sample_result({open_loop_run(), faster})});
  EXPECT_TRUE(page_has(scan, "2 runs with different loads"));
  EXPECT_TRUE(page_has(scan, "open loop, 2 to 4,000 requests /s, constant arrivals"));
  EXPECT_TRUE(page_has(make_page({sample_result({sample_run(), sample_run()})}),
                       "median of 2 runs: 2 responses a second; service time p50 "));
}

TEST(Page, VerdictsOfManyRunsAreShortFirst) {
  std::vector<report::Run> runs(4, sample_run());
  for (std::size_t i = 0; i < runs.size(); ++i) runs[i].verdict_text = std::to_string(i) + "/s";
  EXPECT_FALSE(page_has(make_page({sample_result({runs[0], runs[1], runs[2]})}), "each run"));
  runs[3].verdict_code = "client_late";
  const std::string page = make_page({sample_result(runs)});
  EXPECT_TRUE(page_has(page,
                       "<p>closed loop <span class=\"note\">(run 1, 2, 3)</span></p>"
                       "<p>client late <span class=\"note\">(run 4)</span></p>"
                       "<details><summary>each run</summary><p>0/s "));
}

TEST(Page, SaysWhichRunsAreNotDrawn) {
  const std::vector<report::Run> runs(30, sample_run());
  EXPECT_TRUE(page_has(make_page({sample_result(runs)}), "The first 24 of 30 runs."));
}

}  // namespace
}  // namespace offload::report
