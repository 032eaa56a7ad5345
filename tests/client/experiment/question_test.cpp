#include "apps/client/experiment/question.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "tests/client/run/reversing_server.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/thrown.hpp"

namespace offload::client {
namespace {

using Verdict = Answer::Verdict;
using Words = std::vector<std::string>;

ExperimentTarget target_of(const std::string& name, std::uint16_t port) {
  return {name, "127.0.0.1", std::to_string(port), {}};
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class QuestionTest : public testing::Test {
 protected:
  /// Returns the answer for the load of `words`; told_ is what it printed.
  LoadAnswer answer_to(Question question, const std::vector<ExperimentTarget>& targets,
                       const Words& words) {
    experiment_.question = question;
    experiment_.targets = targets;
    told_.clear();
    return ask(experiment_, {"small", words, "here"}, {"offload-bench", "file"}, folder_.path(),
               signals_, [&](const std::string& text) { told_ += text; });
  }
  [[nodiscard]] ExperimentTarget base() const { return target_of("base", server_.port()); }
  [[nodiscard]] ExperimentTarget other() const { return target_of("new", other_.port()); }
  [[nodiscard]] std::vector<ExperimentTarget> both() const { return {base(), other()}; }

  ReversingServer server_;
  ReversingServer other_;
  core::Signals signals_;
  const support::TempDir folder_;
  Experiment experiment_ = [] {
    Experiment experiment;
    experiment.time = 150ms;
    experiment.slice = 20ms;
    experiment.settle = 2ms;
    experiment.seed = 5;
    return experiment;
  }();
  std::string told_;
};

const Words kClosed = {"--size=64", "--max-concurrent-messages=4"};
const Words kLate = {"--size=64", "--rate=1000", "--lag-tolerance=0"};

TEST_F(QuestionTest, AComparisonIsMadeOfPairsInTheOrderOfTheSeed) {
  experiment_.time = 400ms;
  const LoadAnswer answer = answer_to(Question::compare, both(), kClosed);
  EXPECT_EQ(answer.load, "small");
  EXPECT_FALSE(answer.answer.sentence.empty());
  EXPECT_NE(answer.answer.verdict, Verdict::failed);
  EXPECT_GT(answer.seconds, 0);
  ASSERT_TRUE(answer.compared);
  const Compared& compared = *answer.compared;
  ASSERT_GE(compared.pairs.size(), 2U);
  EXPECT_EQ(compared.base.slices, compared.pairs.size());
  EXPECT_EQ(compared.compared_counts.slices, compared.pairs.size());
  std::mt19937_64 random(5);
  for (const SlicePair& pair : compared.pairs) EXPECT_EQ(pair.new_first, random() >> 63U != 0);
  ASSERT_GE(compared.rows.size(), 3U);
  EXPECT_EQ(compared.rows[0].figure, SliceFigure::low);
  EXPECT_TRUE(compared.rows[0].decides);
  EXPECT_FALSE(compared.rows[1].decides);
  PairedComparison expected(experiment_.rules);
  std::vector<double> of_base;
  std::vector<double> of_new;
  for (const SlicePair& pair : compared.pairs) {
    expected.add(pair.base, pair.compared);
    of_base.push_back(pair.base.us[0]);
    of_new.push_back(pair.compared.us[0]);
  }
  EXPECT_EQ(compared.rows[0].pairs, compared.pairs.size());
  EXPECT_EQ(compared.rows[0].base, metrics::estimate_median(of_base).middle);
  EXPECT_EQ(compared.rows[0].compared, metrics::estimate_median(of_new).middle);
  EXPECT_EQ(compared.rows[0].ratio.middle, expected.ratio(SliceFigure::low).middle);
  EXPECT_TRUE(has(told_, " pairs of slices of 20ms in ")) << told_;
  EXPECT_TRUE(has(told_, "is drawn with seed 5\n")) << told_;
  EXPECT_TRUE(has(told_, "\np25 (us) decides ")) << told_;
  EXPECT_TRUE(has(told_, "\ntime per answer (us) ")) << told_;
  ASSERT_EQ(answer.results.size(), 2U);
  EXPECT_EQ(answer.results[0].first, "base");
  EXPECT_EQ(answer.results[1].first, "new");
  for (const auto& [name, text] : answer.results) {
    const auto result = nlohmann::json::parse(text);
    EXPECT_EQ(result.at("status"), "ok");
    EXPECT_EQ(result.at("command_line"), (Words{"offload-bench", "file"}));
    const std::uint64_t answered = (name == "base" ? server_ : other_).answered();
    EXPECT_GT(result.at("runs").at(0).at("operation_count"), 0);
    EXPECT_LE(result.at("runs").at(0).at("operation_count"), answered);
    EXPECT_EQ(result.at("options").at("seed"), compared.pairs.size() - 1);  // of the last slice
  }
}

TEST_F(QuestionTest, APairWithALateClientDoesNotCount) {
  const LoadAnswer answer = answer_to(Question::compare, both(), kLate);
  EXPECT_EQ(answer.answer.verdict, Verdict::cannot_tell);
  EXPECT_TRUE(has(answer.answer.sentence, "cannot be told: this client was late in "))
      << answer.answer.sentence;
  const Compared& compared = *answer.compared;
  EXPECT_GE(compared.base.client_late + compared.compared_counts.client_late, 1U);
  EXPECT_LT(compared.pairs.size(), compared.base.slices);
}

TEST_F(QuestionTest, AWrongAnswerEndsAComparison) {
  const ReversingServer wrong(0);
  const auto bad = [&](const char* name) { return target_of(name, wrong.port()); };
  const LoadAnswer of_new = answer_to(Question::compare, {base(), bad("new")}, kClosed);
  EXPECT_EQ(of_new.answer.verdict, Verdict::failed);
  EXPECT_TRUE(has(of_new.answer.sentence, "NEW failed: ")) << of_new.answer.sentence;
  EXPECT_TRUE(has(of_new.answer.sentence, "the response differs at offset 0 of 64"))
      << of_new.answer.sentence;
  const ReversingServer wrong_base(0);
  const LoadAnswer of_base =
      answer_to(Question::compare, {target_of("base", wrong_base.port()), other()}, kClosed);
  EXPECT_EQ(of_base.answer.verdict, Verdict::cannot_tell);
  EXPECT_TRUE(has(of_base.answer.sentence, "cannot be told: BASE failed: "))
      << of_base.answer.sentence;
}

TEST_F(QuestionTest, ATargetThatIsGoneEndsAComparison) {
  const core::Fd bound = net::bind_tcp(net::resolve("127.0.0.1", 0).front());
  const auto gone = target_of("new", net::local_address(bound.get()).port());
  Words words = kClosed;
  words.emplace_back("--connect-timeout=20ms");
  const LoadAnswer answer = answer_to(Question::compare, {base(), gone}, words);
  EXPECT_EQ(answer.answer.verdict, Verdict::failed);
  EXPECT_TRUE(has(answer.answer.sentence, "NEW failed: cannot connect to 127.0.0.1:"))
      << answer.answer.sentence;
  const LoadAnswer soak = answer_to(Question::soak, {gone}, words);
  EXPECT_EQ(soak.answer.verdict, Verdict::failed);
  EXPECT_TRUE(has(soak.answer.sentence, "cannot connect to 127.0.0.1:")) << soak.answer.sentence;
  EXPECT_EQ(nlohmann::json::parse(soak.results.at(0).second).at("status"), "failed");
}

TEST_F(QuestionTest, ASoakTellsOfEachTarget) {
  const LoadAnswer answer = answer_to(Question::soak, both(), kClosed);
  EXPECT_EQ(answer.answer.verdict, Verdict::answered);
  EXPECT_TRUE(has(answer.answer.sentence, "BASE: no errors in ")) << answer.answer.sentence;
  EXPECT_TRUE(has(answer.answer.sentence, " answers in 0.1 s; NEW: no errors in ") ||
              has(answer.answer.sentence, " answers in 0.2 s; NEW: no errors in "))
      << answer.answer.sentence;
  EXPECT_EQ(told_.find("BASE\n"), 0U) << told_;
  EXPECT_TRUE(has(told_, "\nNEW\n")) << told_;
  EXPECT_EQ(answer.results.size(), 2U);
  EXPECT_EQ(answer.results.at(1).first, "new");
  EXPECT_GE(answer.seconds, 0.3);

  const LoadAnswer one = answer_to(Question::soak, {base()}, kClosed);
  EXPECT_EQ(one.answer.sentence.find("no errors in "), 0U) << one.answer.sentence;
  EXPECT_FALSE(has(told_, "BASE"));
}

TEST(SoakText, ComparesTheLastTenthWithTheFirst) {
  RunResult run;
  run.duration = std::chrono::seconds(25);
  run.total->answered = 1234;
  const std::string answers = "no errors in 1234 answers in 25.0 s";
  EXPECT_EQ(soak_text(run), answers);
  const auto add = [&](int seconds, double service_p99, double response_p99) {
    results::RunInterval second;
    second.service_time_us.p99 = service_p99;
    second.response_time_us.emplace().p99 = response_p99;
    run.seconds.insert(run.seconds.end(), static_cast<std::size_t>(seconds), second);
  };
  add(2, 100, 0);
  add(7, 900, 0);
  EXPECT_EQ(soak_text(run), answers) << "nine seconds have no tenth";
  add(14, 900, 0);
  add(2, 150, 0);
  EXPECT_EQ(soak_text(run), answers + "; p99 of the last tenth is 1.50 of that of the first");
  for (std::size_t i = 0; i < 2; ++i) run.seconds[i].response_time_us->p99 = 300;
  EXPECT_EQ(soak_text(run), answers + "; p99 of the last tenth is 0.50 of that of the first");
  for (std::size_t i = 0; i < 2; ++i) {
    run.seconds[i].response_time_us.reset();
    run.seconds[i].service_time_us.p99 = 0;
  }
  EXPECT_EQ(soak_text(run), answers);
}

TEST(SoakText, ATenthNeedsTenSeconds) {
  RunResult run;
  run.seconds.resize(10);
  for (auto& second : run.seconds) second.service_time_us.p99 = 100;
  run.seconds.back().service_time_us.p99 = 150;
  EXPECT_TRUE(has(soak_text(run), "; p99 of the last tenth is 1.50 of that of the first"))
      << soak_text(run);
}

TEST(SoakText, ATimeBelowAMicrosecondIsOne) {
  RunResult run;
  run.seconds.resize(10);
  for (auto& second : run.seconds) {
    second.service_time_us.p99 = 0.25;
    second.response_time_us.emplace().p99 = 0.5;
  }
  run.seconds.back().response_time_us->p99 = 0.75;
  EXPECT_TRUE(has(soak_text(run), "; p99 of the last tenth is 1.50 of that of the first"))
      << soak_text(run);
}

TEST_F(QuestionTest, ASoakOfWrongLoadsIsNotAnswered) {
  const LoadAnswer late = answer_to(Question::soak, {base()}, kLate);
  EXPECT_EQ(late.answer.verdict, Verdict::cannot_tell);
  EXPECT_EQ(late.answer.sentence, "this client was late in 1 of 1 runs");
  const LoadAnswer few = answer_to(Question::soak, {base()}, {"--rate=20", "--lag-tolerance=20s"});
  EXPECT_EQ(few.answer.verdict, Verdict::cannot_tell);
  EXPECT_TRUE(has(few.answer.sentence, "too few requests for a verdict")) << few.answer.sentence;
  const ReversingServer wrong(0);
  const LoadAnswer failed =
      answer_to(Question::soak, {target_of("base", wrong.port())}, {"--on-error=count"});
  EXPECT_EQ(failed.answer.verdict, Verdict::failed);
  EXPECT_TRUE(has(failed.answer.sentence, "request 0: the response differs at offset 0 of 5"))
      << failed.answer.sentence;
}

TEST_F(QuestionTest, ACurveCountsItsRuns) {
  const LoadAnswer answer =
      answer_to(Question::curve, {base()}, {"--scan=depth=1,4", "--iteration-count=20"});
  EXPECT_EQ(answer.answer.verdict, Verdict::answered);
  EXPECT_EQ(answer.answer.sentence, "2 runs without errors, the server kept up in all but 0");
  const LoadAnswer few = answer_to(
      Question::curve, {base()}, {"--scan=rate=20,30", "--duration=100ms", "--lag-tolerance=20s"});
  EXPECT_EQ(few.answer.sentence,
            "2 runs without errors, the server kept up in all but 0, and 2 had too few requests "
            "for a verdict");
}

TEST_F(QuestionTest, ASearchMayHaveNoAnswer) {
  Words words = {"--search=p50:1us", "--duration=20ms", "--rate=100", "--lag-tolerance=20s"};
  const LoadAnswer lowest = answer_to(Question::search, {base()}, words);
  EXPECT_EQ(lowest.answer.verdict, Verdict::failed);
  EXPECT_EQ(lowest.answer.sentence, "even 0.001 requests/s exceed the bound");
  words.emplace_back("--seed=1");  // the first request is not due at once
  const LoadAnswer few = answer_to(Question::search, {base()}, words);
  EXPECT_EQ(few.answer.verdict, Verdict::cannot_tell);
  EXPECT_TRUE(has(few.answer.sentence, "too few requests for a verdict at "))
      << few.answer.sentence;
  const ReversingServer wrong(0);
  const LoadAnswer failed = answer_to(Question::search, {target_of("base", wrong.port())},
                                      {"--search=p50:1s", "--duration=50ms"});
  EXPECT_EQ(failed.answer.verdict, Verdict::failed);
  EXPECT_EQ(failed.answer.sentence, "the search was interrupted");
}

TEST_F(QuestionTest, EachTargetAnswersOneRequestFirst) {
  experiment_.targets = both();
  experiment_.loads = {{"", {"--size=64", "--rate=1000", "-t4", "--connections=3"}, "here"}};
  std::vector<TargetProcess> none;
  EXPECT_TRUE(wait_for_targets(experiment_, none, signals_));
  EXPECT_EQ(server_.answered(), 1U);
  EXPECT_EQ(other_.answered(), 1U);
  const ReversingServer wrong(0);
  experiment_.targets[1] = target_of("new", wrong.port());
  const auto error = support::thrown_by([&] { wait_for_targets(experiment_, none, signals_); });
  EXPECT_EQ(error.code(), core::ErrorCode::timed_out);
  EXPECT_TRUE(has(error.what(), "NEW does not answer a first request: "));
  EXPECT_TRUE(has(error.what(), "the response differs")) << error.what();
}

TEST_F(QuestionTest, ATargetThatIsGoneAnswersNoFirstRequest) {
  const core::Fd bound = net::bind_tcp(net::resolve("127.0.0.1", 0).front());
  experiment_.targets = {target_of("base", net::local_address(bound.get()).port())};
  experiment_.loads = {{"", {"--size=64", "--connect-timeout=20ms"}, "here"}};
  experiment_.start_limit = kBound;  // the load's own limit is shorter
  std::vector<TargetProcess> none;
  const auto begin = core::Clock::now();
  const auto error = support::thrown_by([&] { wait_for_targets(experiment_, none, signals_); });
  EXPECT_LT(core::Clock::now() - begin, kBound);
  EXPECT_EQ(error.code(), core::ErrorCode::timed_out);
  EXPECT_TRUE(has(error.what(), "BASE does not answer a first request: cannot connect to "))
      << error.what();
}

TEST_F(QuestionTest, ATargetMayAnswerLater) {
  const ReversingServer wrong(0);
  experiment_.targets = {target_of("base", wrong.port())};
  experiment_.targets[0].start = {"sleep 1000"};
  experiment_.loads = {{"", kClosed, "here"}};
  auto processes = start_targets(experiment_, folder_.path());
  EXPECT_TRUE(wait_for_targets(experiment_, processes, signals_));
  EXPECT_EQ(wrong.answered(), 2U);
}

TEST_F(QuestionTest, CommandsOfTargetsHaveLogs) {
  experiment_.targets = both();
  experiment_.targets[0].start = {"echo one", "echo two"};
  experiment_.targets[1].start = {"echo three"};
  experiment_.loads = {{"", kClosed, "here"}};
  auto processes = start_targets(experiment_, folder_.path());
  ASSERT_EQ(processes.size(), 3U);
  for (TargetProcess& process : processes) {
    EXPECT_TRUE(process.wait_until(core::Clock::now() + kBound));
  }
  EXPECT_EQ(folder_.read("base-1.log"), "one\n");
  EXPECT_EQ(folder_.read("base-2.log"), "two\n");
  EXPECT_EQ(folder_.read("new-1.log"), "three\n");
  const auto error =
      support::thrown_by([&] { wait_for_targets(experiment_, processes, signals_); });
  EXPECT_EQ(error.code(), core::ErrorCode::bad_state);
  EXPECT_EQ(error.what(), "'echo one' has ended: see '" + folder_.file("base-1.log") + "'");
}

TEST(QuestionDeathTest, ASignalEndsAQuestion) {
  const auto interrupted = [](Question question, const Words& words) {
    core::Signals signals;
    const ReversingServer server;
    Experiment experiment;
    experiment.question = question;
    experiment.targets = {target_of("base", server.port()), target_of("new", server.port())};
    experiment.loads = {{"", words, "here"}};
    ::kill(::getpid(), SIGTERM);
    if (question == Question::curve) {
      std::vector<TargetProcess> none;
      std::_Exit(wait_for_targets(experiment, none, signals) ? 1 : 0);
    }
    const LoadAnswer answer =
        ask(experiment, experiment.loads[0], {}, "", signals, [](const std::string&) {});
    const bool is_base_alone = question == Question::compare || answer.results.size() == 1;
    std::_Exit(answer.answer.verdict == Verdict::interrupted && is_base_alone ? 0 : 1);
  };
  EXPECT_EXIT(interrupted(Question::compare, kClosed), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(interrupted(Question::soak, kClosed), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(interrupted(Question::curve, {"--scan=depth=1"}), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace offload::client
