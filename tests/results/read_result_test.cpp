#include "results/read_result.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "results/write_result.hpp"
#include "tests/results/sample.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/thrown.hpp"

namespace offload::results {
namespace {

using nlohmann::json;

std::string refusal(const std::string& text) {
  const auto error = support::thrown_by([&] { parse_result(text, "a.json"); });
  EXPECT_EQ(error.code(), core::ErrorCode::bad_message);
  std::string what = error.what();
  EXPECT_EQ(what.rfind("'a.json' ", 0), 0U) << what;
  EXPECT_EQ(what.find('\n'), std::string::npos) << what;
  return what;
}

json sample_json() {
  Run run = open_loop_run();
  run.errors = {{"mismatch", 3}};
  Result result = sample_result({run, run, run});
  result.repeats = {{"io_rate_miops", {1, 0.5, 1.5, 0.95}}};
  result.faults = {"a fault"};
  return json::parse(result_text(result));
}

TEST(ReadResult, TakesWhatWriteResultMakes) {
  const std::string text = sample_json().dump();
  const Result result = parse_result(text, "a.json");
  EXPECT_EQ(result.file, "a.json");
  ASSERT_EQ(result.runs.size(), 3U);
  EXPECT_EQ(result.runs[0].errors.at(0).second, 3U);
  EXPECT_EQ(result.runs[0].response_time_us->at(Statistic::max), 410);
  EXPECT_EQ(result.runs[0].intervals.at(1).service_time_us.max, 400);
  EXPECT_EQ(result.options.at(2).second, "\"reverse\"");
  EXPECT_EQ(result.repeats.at(0).second.high, 1.5);
  EXPECT_FALSE(result.is_search);
  EXPECT_EQ(json::parse(result_text(result)), json::parse(text));
}

TEST(ReadResult, TakesTheKindsOfARun) {
  results::Run run = run_of_kinds();
  run.kinds[0].errors = {{"timeout", 1}};
  run.kinds[0].offered_per_second = 2;
  run.warmup_seconds = 0.5;
  run.unanswered_requests = 7;
  const std::string text = result_text(sample_result({run}));
  const Result result = parse_result(text, "a.json");
  ASSERT_EQ(result.runs.at(0).kinds.size(), 2U);
  const KindFigures& kind = result.runs[0].kinds[0];
  EXPECT_EQ(kind.name, "find");
  EXPECT_EQ(kind.port, 12345U);
  EXPECT_EQ(kind.error_count(), 1U);
  EXPECT_EQ(kind.service_time_us.at(Statistic::max), 400);
  EXPECT_EQ(result.runs[0].measured_from(), run.started_at_unix_s + 0.5);
  EXPECT_EQ(result_text(result), text);
}

TEST(ReadResult, RefusesAMedianOutsideOfItsInterval) {
  json other = sample_json();
  other["repeats"]["io_rate_miops"]["low"] = 1.25;
  EXPECT_NE(refusal(other.dump()).find("repeats.io_rate_miops.median is not between"),
            std::string::npos);
}

TEST(ReadResult, RefusesARunThatContradictsItself) {
  json other = sample_json();
  other["runs"][2]["intervals"][0]["operations"] = 3;
  EXPECT_NE(refusal(other.dump()).find("runs[2] is inconsistent: intervals have 5 operations"),
            std::string::npos);
}

TEST(ReadResult, TakesAnAnswerWithTheResultsOfItsLoads) {
  json answer = {{"program", "offload-bench"},
                 {"format", 1},
                 {"verdict", "slower"},
                 {"sentence", "3.1 % slower (2.5 to 3.9)"},
                 {"loads",
                  {{{"name", "short"},
                    {"results",
                     {{{"target", "base"}, {"result", sample_json()}},
                      {{"target", "new"}, {"result", sample_json()}}}}}}}};
  const ResultFile file = parse_result_file(answer.dump(), "a.json");
  EXPECT_EQ(file.verdict, "slower");
  EXPECT_EQ(file.sentence, "3.1 % slower (2.5 to 3.9)");
  ASSERT_EQ(file.results.size(), 2U);
  EXPECT_EQ(file.results[1].file, "a.json short new");
  EXPECT_EQ(file.results[1].runs.size(), 3U);
  EXPECT_NE(refusal(answer.dump()).find("this is not a result of offload-client"),
            std::string::npos);
  answer["verdict"] = "good";
  EXPECT_EQ(support::thrown_by([&] { parse_result_file(answer.dump(), "a.json"); }).code(),
            core::ErrorCode::bad_message);
  answer["verdict"] = "slower";
  answer["format"] = 2;
  EXPECT_NE(
      std::string(support::thrown_by([&] { parse_result_file(answer.dump(), "a.json"); }).what())
          .find("format is not 1"),
      std::string::npos);
  const ResultFile plain = parse_result_file(sample_json().dump(), "a.json");
  EXPECT_TRUE(plain.verdict.empty());
  EXPECT_EQ(plain.results.size(), 1U);
}

TEST(ReadResult, PassesOverWhatTheFormatDoesNotName) {
  json wider = sample_json();
  wider["notes"] = {{"deep", {1, 2, {{"er", nullptr}}}}};
  wider["runs"][0]["also"] = true;
  EXPECT_EQ(parse_result(wider.dump(), "a.json").runs.size(), 3U);
}

/// Every member of every object of a result, as JSON pointers.
void list_members(const json& value, const std::string& at, std::vector<std::string>& pointers) {
  if (value.is_array() && !value.empty()) list_members(value[0], at + "/0", pointers);
  if (!value.is_object()) return;
  for (const auto& item : value.items()) {
    pointers.push_back(at + "/" + item.key());
    list_members(item.value(), at + "/" + item.key(), pointers);
  }
}

/// Those whose names are free, and which need not be there.
bool is_free(const std::string& pointer) {
  for (const char* const free : {"/options/", "/errors/"}) {
    if (pointer.find(free) != std::string::npos) return true;
  }
  return pointer == "/repeats/io_rate_miops";
}

TEST(ReadResult, RefusesAnyMemberThatIsMissingOrOfAnotherType) {
  const json whole = sample_json();
  std::vector<std::string> pointers;
  list_members(whole, "", pointers);
  ASSERT_GT(pointers.size(), 70U);
  for (const std::string& pointer : pointers) {
    const json::json_pointer at(pointer);
    const std::string name = pointer.substr(pointer.rfind('/') + 1);
    if (!is_free(pointer)) {
      json without = whole;
      without[at.parent_pointer()].erase(name);
      EXPECT_NE(refusal(without.dump()).find(name + " is missing"), std::string::npos) << pointer;
    }
    for (const json& wrong : {json{{"an", {{"object", 1}}}}, json(-1.5), json("x"), json(true)}) {
      if (whole[at].is_string() && wrong.is_string()) continue;
      if (pointer.find("/options/") != std::string::npos && !wrong.is_object()) continue;
      if (pointer == "/search") continue;
      json other = whole;
      other[at] = wrong;
      EXPECT_NE(refusal(other.dump()).find(name), std::string::npos) << pointer << wrong;
    }
  }
}

TEST(ReadResult, RefusesNumbersThatAreTooLarge) {
  for (const char* const pointer :
       {"/runs/0/operation_count", "/runs/0/duration_seconds", "/runs/0/started_at_unix_s",
        "/runs/1/intervals/1/start_s", "/runs/0/service_time_us/p99", "/runs/0/io_rate_miops"}) {
    json large = sample_json();
    large[json::json_pointer(pointer)] = 1e300;
    refusal(large.dump());
  }
  std::string text = sample_json().dump();
  text.replace(text.find("\"processors\":8"), 14, "\"processors\":1e999");
  refusal(text);
}

TEST(ReadResult, RefusesHistogramsThatDoNotFit) {
  json other = sample_json();
  other["runs"][1]["service_time_us"]["histogram"] = encoded({1, 2, 3});
  EXPECT_NE(refusal(other.dump())
                .find("runs[1].service_time_us.histogram has 3 latencies, but count is 4"),
            std::string::npos);
  other["runs"][1]["service_time_us"]["histogram"] = "HISTFAAAAnonsense";
  EXPECT_NE(refusal(other.dump()).find("runs[1].service_time_us.histogram is not a histogram"),
            std::string::npos);
}

TEST(ReadResult, RefusesStatisticsOfAnIntervalThatItsHistogramDoesNotHave) {
  json other = sample_json();
  other["runs"][0]["intervals"][1]["service_time_us"]["max"] = 500;
  EXPECT_NE(refusal(other.dump()).find("runs[0].intervals[1].service_time_us.max is 500"),
            std::string::npos);
}

TEST(ReadResult, KnowsAResultThatWasSearchedFor) {
  json searched = sample_json();
  searched["search"] = {{"best", 1}};
  EXPECT_TRUE(parse_result(searched.dump(), "a.json").is_search);
}

TEST(ReadResult, RefusesIntervalsOutOfOrder) {
  results::Run run = sample_run();
  run.intervals = {interval_of(0, 1, {100}), interval_of(1, 1, {200}), interval_of(2, 1, {300}),
                   interval_of(3, 1, {400})};
  const json whole = json::parse(result_text(sample_result({run, run, run})));
  EXPECT_EQ(parse_result(whole.dump(), "a.json").runs[2].intervals.size(), 4U);
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t late = 1; late < 4; ++late) {
      json other = whole;
      std::swap(other["runs"][i]["intervals"][late - 1]["start_s"],
                other["runs"][i]["intervals"][late]["start_s"]);
      const std::string place = fmt::format("runs[{}].intervals[{}].start_s is before", i, late);
      EXPECT_NE(refusal(other.dump()).find(place), std::string::npos) << place;
    }
  }
}

TEST(ReadResult, RefusesOtherFormatsAndPrograms) {
  json other = sample_json();
  other["format"] = 2;
  EXPECT_NE(refusal(other.dump()).find("format is not 1"), std::string::npos);
  other = sample_json();
  other["program"] = "wrk";
  EXPECT_NE(refusal(other.dump()).find("program is not offload-client"), std::string::npos);
}

TEST(ReadResult, RefusesWhatIsNoJson) {
  EXPECT_NE(refusal("").find("is empty"), std::string::npos);
  EXPECT_NE(refusal("{\"program\": ").find("is not valid JSON"), std::string::npos);
  EXPECT_NE(refusal("\"\xff\xfe\"").find("is not valid JSON"), std::string::npos);
  EXPECT_NE(refusal("\x1b[2J\n").find("is not valid JSON"), std::string::npos);
  EXPECT_NE(refusal("[1]").find("is not an object"), std::string::npos);
  EXPECT_NE(refusal(std::string(100'000, '[')).find("levels deep"), std::string::npos);
}

TEST(ReadResult, NamesTheFileThatCannotBeRead) {
  const support::TempDir folder;
  const auto what = [](const std::string& path) {
    return std::string(support::thrown_by([&] { read_result(path); }).what());
  };
  EXPECT_NE(what(folder.file("none")).find("none' cannot be read: No such"), std::string::npos);
  EXPECT_NE(what(folder.path()).find("cannot be read"), std::string::npos);
  std::ofstream(folder.file("empty")).close();
  EXPECT_NE(what(folder.file("empty")).find("empty' is empty"), std::string::npos);
  std::ofstream(folder.file("right")) << sample_json();
  EXPECT_EQ(read_result(folder.file("right")).file, folder.file("right"));
}

TEST(ReadResult, DoesNotReadAFileThatIsTooLong) {
  const support::TempDir folder;
  std::ofstream(folder.file("long")).close();
  std::filesystem::resize_file(folder.file("long"), (std::uintmax_t{256} << 20) + 1);
  const auto error = support::thrown_by([&] { read_result(folder.file("long")); });
  EXPECT_NE(std::string(error.what()).find("long' is longer than 256 MiB"), std::string::npos);
}

}  // namespace
}  // namespace offload::results
