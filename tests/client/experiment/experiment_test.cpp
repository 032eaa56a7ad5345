#include "apps/client/experiment/experiment.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <string>

#include "tests/support/temp_dir.hpp"
#include "tests/support/thrown.hpp"

namespace offload::client {
namespace {

using namespace std::chrono_literals;

constexpr const char* kTargets =
    "[base]\naddress = \"127.0.0.1:1\"\n[new]\naddress = \"[::1]:2\"\nstart = [\"a b\", \"c\"]\n";
constexpr const char* kOneLoad = "[[load]]\nsize = 64\n";

class ExperimentFile : public testing::Test {
 protected:
  Experiment read(const std::string& text) const {
    std::ofstream(path_, std::ios::binary) << text;
    return read_experiment(path_);
  }
  /// Returns the error about the file, without the path.
  [[nodiscard]] std::string refused(const std::string& text) const {
    const std::string all = support::thrown_by([&] { (void)read(text); }).what();
    return all.starts_with(path_) ? all.substr(path_.size()) : "no path: " + all;
  }

  const support::TempDir directory_;
  const std::string path_ = directory_.file("experiment.toml");
};

TEST_F(ExperimentFile, HasDefaults) {
  const Experiment experiment = read(std::string(kTargets) + kOneLoad);
  EXPECT_EQ(experiment.question, Question::compare);
  EXPECT_EQ(experiment.time, 60s);
  EXPECT_EQ(experiment.slice, 80ms);
  EXPECT_EQ(experiment.rules.figure, SliceFigure::low);
  EXPECT_EQ(experiment.rules.tolerance, 0.01);
  ASSERT_EQ(experiment.targets.size(), 2U);
  EXPECT_EQ(experiment.targets[0].name, "base");
  EXPECT_EQ(experiment.targets[1].address, "::1");
  EXPECT_EQ(experiment.targets[1].port, "2");
  EXPECT_EQ(experiment.targets[1].start, (std::vector<std::string>{"a b", "c"}));
}

TEST_F(ExperimentFile, TakesAllKeys) {
  const Experiment experiment = read(
      "question = \"compare\"\ntime = \"5s\"\nslice = \"50ms\"\nsettle = \"1ms\"\n"
      "start-limit = \"2s\"\ntolerance = \"2 %\"\nfigure = \"rate\"\nseed = 7\n" +
      std::string(kTargets) + "[[load]]\nname = \"short\"\nsize = 64\ntls = true\n" + kOneLoad);
  EXPECT_EQ(experiment.time, 5s);
  EXPECT_EQ(experiment.slice, 50ms);
  EXPECT_EQ(experiment.settle, 1ms);
  EXPECT_EQ(experiment.start_limit, 2s);
  EXPECT_EQ(experiment.rules.tolerance, 0.02);
  EXPECT_EQ(experiment.rules.figure, SliceFigure::per_answer);
  EXPECT_EQ(experiment.seed, 7U);
  ASSERT_EQ(experiment.loads.size(), 2U);
  EXPECT_EQ(experiment.loads[0].name, "short");
  const Options options = options_of(experiment, experiment.targets[1], experiment.loads[0]);
  EXPECT_EQ(options.server_address, "::1");
  EXPECT_EQ(options.server_port, 2);
  EXPECT_EQ(options.duration, 50ms);
  EXPECT_EQ(options.warmup, 1ms);
  EXPECT_TRUE(options.tls);
  EXPECT_TRUE(options.has_sizes());
}

TEST_F(ExperimentFile, TheBaseComesFirst) {
  const Experiment experiment =
      read("[new]\naddress = \"h:2\"\n[base]\naddress = \"h:1\"\n" + std::string(kOneLoad));
  EXPECT_EQ(experiment.targets[0].name, "base");
  EXPECT_EQ(experiment.targets[1].name, "new");
}

TEST_F(ExperimentFile, AToleranceIsAShareOrPercent) {
  const auto tolerance = [&](const std::string& text) {
    return read("tolerance = \"" + text + "\"\n" + kTargets + kOneLoad).rules.tolerance;
  };
  EXPECT_DOUBLE_EQ(tolerance("0.02"), 0.02);
  EXPECT_DOUBLE_EQ(tolerance("2%"), 0.02);
  EXPECT_DOUBLE_EQ(tolerance("50%"), 0.5);
  for (const std::string none : {"0", "0%", "-1%", "%", "0.51"}) {
    EXPECT_EQ(refused("tolerance = \"" + none + "\"\n" + kTargets + kOneLoad),
              ":1:1: tolerance: '" + none + "' is not a share up to 50 %, such as 1%");
  }
}

TEST_F(ExperimentFile, ASettingHasOneValueAndAQuestionABase) {
  EXPECT_EQ(refused("tolerance = [\"1%\", \"2%\"]\n" + std::string(kTargets) + kOneLoad),
            ":1:1: tolerance: expected one value");
  EXPECT_EQ(refused("question = \"soak\"\ntime = \"1s\"\n[new]\naddress = \"h:1\"\n" +
                    std::string(kOneLoad)),
            ": a table [base] is missing");
}

TEST_F(ExperimentFile, OtherQuestionsHaveTheRunsOfTheClient) {
  const std::string base = "[base]\naddress = \"h:1\"\n";
  const auto of = [&](const std::string& text) {
    const Experiment experiment = read(text);
    return options_of(experiment, experiment.targets[0], experiment.loads[0]);
  };
  const Options search = of("question = \"search\"\n" + base +
                            "[[load]]\nsize = 64\nduration = \"1s\"\nsearch = \"p99:500us\"\n");
  ASSERT_TRUE(search.search);
  EXPECT_EQ(search.search->bound, 500us);
  const Options curve = of("question = \"curve\"\n" + base +
                           "[[load]]\nsize = 64\nduration = \"1s\"\nscan = \"rate=1k,2k\"\n");
  ASSERT_TRUE(curve.scan);
  EXPECT_EQ(curve.scan->values, (std::vector<double>{1000, 2000}));
  const Options soak = of("question = \"soak\"\ntime = \"90s\"\n" + base + "[[load]]\nsize = 64\n");
  EXPECT_EQ(soak.duration, 90s);
}

TEST_F(ExperimentFile, WhatIsWrongIsSaidWithItsPlace) {
  const std::string targets = kTargets;
  EXPECT_EQ(refused("question = \"why\"\n" + targets + kOneLoad),
            ":1:1: question: 'why' is not one of compare, search, curve, soak");
  EXPECT_EQ(refused("tolerance = \"60%\"\n" + targets + kOneLoad),
            ":1:1: tolerance: '60%' is not a share up to 50 %, such as 1%");
  EXPECT_EQ(refused(targets), ": a table [[load]] is missing");
  EXPECT_EQ(refused("[base]\naddress = \"h:1\"\n[[load]]\nsize = 64\n"),
            ": a table [new] is missing: compare has two targets");
  EXPECT_EQ(refused(targets + kOneLoad + "[other]\nx = 1\n"),
            ":8:1: [other] is not one of base, new, load");
  EXPECT_EQ(refused(targets + "[[load]]\nduration = \"1s\"\n"),
            ":7:1: duration is not an option of a load of the question compare");
  EXPECT_EQ(refused("[base]\nwhere = 1\n"), ":2:1: where is not one of address, start");
  EXPECT_EQ(refused("[base]\naddress = \"h\"\n"), ":2:1: address: expected HOST:PORT");
  EXPECT_EQ(refused("[base]\nstart = [\"a\"]\n"), ":1:1: base needs an address: HOST:PORT");
  EXPECT_EQ(refused("[base]\naddress = \":1\"\n"), ":1:1: base needs an address: HOST:PORT");
  EXPECT_EQ(refused("hosts = [\"a\"]\n" + targets + kOneLoad),
            ": hosts belong to the question soak, whose only run begins everywhere at once");
  EXPECT_EQ(refused("question = \"soak\"\nhosts = [\"-oProxyCommand=x\"]\n" + targets + kOneLoad),
            ": a host is not a name");
  EXPECT_EQ(refused("question = \"search\"\n" + targets + kOneLoad),
            ":7:1: search needs the option search, such as search = \"p99:500us\"");
  EXPECT_EQ(refused("question = \"curve\"\n" + targets + kOneLoad),
            ":7:1: curve needs the option scan, such as scan = \"rate=10k,20k\"");
}

/// The client's own words about an option.
TEST_F(ExperimentFile, AnOptionOfALoadIsCheckedAsOnTheCommandLine) {
  const std::string wrong = refused(std::string(kTargets) + "[[load]]\nsize = \"much\"\n");
  EXPECT_TRUE(wrong.starts_with(":6:1: offload-client: --size: 'much' is not a size")) << wrong;
  EXPECT_NE(refused(std::string(kTargets) + "[[load]]\nsizes = 1\n").find("--sizes"),
            std::string::npos);
}

}  // namespace
}  // namespace offload::client
