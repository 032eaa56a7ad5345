#include "apps/client/experiment/answer_files.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace offload::client {
namespace {

using Verdict = Answer::Verdict;

LoadAnswer load_answer(const std::string& name, Verdict verdict, const std::string& sentence) {
  LoadAnswer answer;
  answer.load = name;
  answer.answer = {verdict, sentence};
  answer.seconds = 1.5;
  return answer;
}

TEST(Answers, TheWorstVerdictIsThatOfTheWhole) {
  const auto verdict_of = [](Verdict one, Verdict other) {
    return answer_of({load_answer("", one, ""), load_answer("", other, "")}).verdict;
  };
  EXPECT_EQ(verdict_of(Verdict::equal, Verdict::faster), Verdict::equal);
  EXPECT_EQ(verdict_of(Verdict::cannot_tell, Verdict::equal), Verdict::cannot_tell);
  EXPECT_EQ(verdict_of(Verdict::cannot_tell, Verdict::slower), Verdict::slower);
  EXPECT_EQ(verdict_of(Verdict::failed, Verdict::interrupted), Verdict::failed);
  EXPECT_EQ(
      answer_of({load_answer("a", Verdict::equal, "x"), load_answer("b", Verdict::equal, "y")})
          .sentence,
      "a: x; b: y");
}

TEST(Answers, OnlyAGoodVerdictHasStatusZero) {
  EXPECT_EQ(status_of(Verdict::answered), 0);
  EXPECT_EQ(status_of(Verdict::equal), 0);
  EXPECT_EQ(status_of(Verdict::faster), 0);
  EXPECT_EQ(status_of(Verdict::slower), 1);
  EXPECT_EQ(status_of(Verdict::failed), 1);
  EXPECT_EQ(status_of(Verdict::cannot_tell), 3);
  EXPECT_EQ(status_of(Verdict::interrupted), 130);
}

TEST(Answers, JUnitHasACaseForEachLoad) {
  ExperimentOutcome outcome{"e.toml", {}, {}, 4};
  outcome.loads = {load_answer("good", Verdict::equal, "equal within 1 %"),
                   load_answer("bad", Verdict::slower, "3.1 % slower <\"&\x01>"),
                   load_answer("", Verdict::cannot_tell, "cannot be told")};
  EXPECT_EQ(junit_of({}, outcome),
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<testsuite name=\"offload-bench\" tests=\"3\" failures=\"1\" errors=\"1\" "
            "time=\"4.000\">\n"
            "  <testcase classname=\"offload-bench.compare\" name=\"good\" time=\"1.500\">"
            "<system-out>equal within 1 %</system-out></testcase>\n"
            "  <testcase classname=\"offload-bench.compare\" name=\"bad\" time=\"1.500\">"
            "<failure type=\"slower\" message=\"3.1 % slower &lt;&quot;&amp;?&gt;\"/>"
            "<system-out>3.1 % slower &lt;&quot;&amp;?&gt;</system-out></testcase>\n"
            "  <testcase classname=\"offload-bench.compare\" name=\"e.toml\" time=\"1.500\">"
            "<error type=\"cannot_tell\" message=\"cannot be told\"/>"
            "<system-out>cannot be told</system-out></testcase>\n"
            "</testsuite>\n");
}

TEST(Answers, AnExperimentThatDidNotBeginIsAnErrorForCi) {
  ExperimentOutcome outcome{"e.toml", {Verdict::failed, "BASE does not answer"}, {}, 1};
  const std::string xml = junit_of({}, outcome);
  EXPECT_NE(xml.find("tests=\"1\" failures=\"1\" errors=\"0\""), std::string::npos) << xml;
}

TEST(Answers, JsonHasTheSentenceAndTheStatus) {
  ExperimentOutcome outcome{"e.toml", {Verdict::slower, "3.1 % slower (2.5 to 3.9)"}, {}, 1};
  outcome.loads = {load_answer("", Verdict::slower, "3.1 % slower (2.5 to 3.9)")};
  outcome.loads[0].compared.emplace();
  outcome.loads[0].compared->rows.push_back(
      {SliceFigure::low, true, 1, 2, 3, metrics::SequentialMedian(0.1).estimate()});
  const auto json = json_of({}, outcome, {"offload-bench", "e.toml"});
  EXPECT_EQ(json["program"], "offload-bench");
  EXPECT_EQ(json["sentence"], "3.1 % slower (2.5 to 3.9)");
  EXPECT_EQ(json["exit_status"], 1);
  EXPECT_EQ(json["format"], 1);
  EXPECT_EQ(json["loads"][0]["compare"]["confidence"], 0.95);
  const auto& figure = json["loads"][0]["compare"]["figures"]["p25"];
  EXPECT_EQ(figure["decides"], true);
  EXPECT_TRUE(figure["low"].is_null());
}

}  // namespace
}  // namespace offload::client
