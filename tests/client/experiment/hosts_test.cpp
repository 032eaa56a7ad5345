#include "apps/client/experiment/hosts.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/temp_dir.hpp"
#include "tests/support/thrown.hpp"

namespace offload::client {
namespace {

TEST(ClockOffset, IsFromTheMiddleOfTheShortestReading) {
  // The second answer took 2 s each way, the first 1 s there and 5 s back.
  const ClockOffset clock = offset_of({{10, 111, 16}, {20, 122, 24}, {30, 135, 39}});
  EXPECT_DOUBLE_EQ(clock.offset, 100);
  EXPECT_DOUBLE_EQ(clock.uncertainty, 2);
}

/// However the way is divided, the offset is within the uncertainty.
TEST(ClockOffset, IsWithinItsUncertainty) {
  for (const double there : {0.0, 0.25, 1.0}) {
    const ClockOffset clock = offset_of({{5, 5 + there - 7, 6}});
    EXPECT_LE(std::abs(clock.offset + 7), clock.uncertainty) << there;
  }
}

/// Stands in for ssh: each host behaves as its name says, and its clock always tells 5 s.
constexpr const char* kSsh = R"(#!/bin/sh
[ "$1 $2" = "-o BatchMode=yes" ] || exit 1
case $3,$4 in
silent,*) exit 0 ;;
words,while*) while read line; do echo soon; done ;;
slow,while*) while read line; do sleep 0.05; echo 5; done ;;
counted,while*) while read line; do echo >>"${0%/*}/readings"; echo 5.0; done ;;
*,while*) while read line; do echo 5.0; done ;;
*) exec sh -c "$4" ;;
esac
)";

class HostsTest : public testing::Test {
 protected:
  HostsTest() {
    add_program("ssh", kSsh);
    ::setenv("PATH", (folder_.path() + ":" + path_).c_str(), 1);
    experiment_.question = Question::soak;
    experiment_.time = std::chrono::seconds(1);
  }
  ~HostsTest() override { ::setenv("PATH", path_.c_str(), 1); }

  void add_program(const std::string& name, const std::string& text) const {
    folder_.write(name, text);
    std::filesystem::permissions(folder_.file(name), std::filesystem::perms::owner_all);
  }
  /// Runs the client `text` of the shell on these hosts.
  Answer answer_of(const std::vector<std::string>& hosts, const std::string& text = "") {
    add_program("offload-client", "#!/bin/sh\n" + text);
    experiment_.hosts = hosts;
    return run_on_hosts(experiment_, {"base", "127.0.0.1", "7", {}},
                        {"", {"--size=64", "--seed=7"}, "here"}, folder_.path(), signals_, clocks_,
                        result_);
  }

  const std::string path_ = std::getenv("PATH");
  const support::TempDir folder_;
  core::Signals signals_;
  Experiment experiment_;
  std::vector<HostClock> clocks_;
  std::string result_;
};

double unix_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

TEST_F(HostsTest, AHostThatDoesNotTellItsTimeIsNamed) {
  const auto silent = support::thrown_by([&] { answer_of({"silent"}); });
  EXPECT_EQ(silent.code(), core::ErrorCode::not_connected);
  EXPECT_STREQ(silent.what(), "silent does not tell its time");
  const auto words = support::thrown_by([&] { answer_of({"fine", "words"}); });
  EXPECT_EQ(words.code(), core::ErrorCode::bad_message);
  EXPECT_STREQ(words.what(), "words tells no time");
  EXPECT_EQ(clocks_.size(), 1U);
}

TEST_F(HostsTest, AClockMustBeKnownWell) {
  const Answer answer = answer_of({"slow"});
  EXPECT_EQ(answer.verdict, Answer::Verdict::cannot_tell);
  EXPECT_EQ(answer.sentence.rfind("cannot be told: the clock of slow is known to ", 0), 0U)
      << answer.sentence;
  EXPECT_NE(answer.sentence.find(" ms only, 10 is the most"), std::string::npos);
  ASSERT_EQ(clocks_.size(), 1U);
  EXPECT_GE(clocks_[0].clock.uncertainty, 0.025);
}

// The first reading takes as long as the connection, so it does not count.
TEST_F(HostsTest, AClockIsReadTwentyTimesAfterTheFirstReading) {
  answer_of({"counted"}, "exit 1");
  EXPECT_EQ(folder_.read("readings"), std::string(21, '\n'));
}

TEST_F(HostsTest, AClientMustHaveAResult) {
  for (const char* text : {"exit 1", "echo 1", "echo '{}'", "echo '{\"runs\": []}'"}) {
    const Answer answer = answer_of({"a b"}, text);
    EXPECT_EQ(answer.verdict, Answer::Verdict::failed);
    EXPECT_EQ(answer.sentence, "no result of the client on a b: see '" +
                                   folder_.file("base-client-1-a-b.log") + "'");
  }
}

TEST_F(HostsTest, AClientMustBeginInTime) {
  const Answer answer = answer_of({"far"}, R"(echo '{"runs": [{"started_at_unix_s": 1005.0}]}')");
  EXPECT_EQ(answer.verdict, Answer::Verdict::cannot_tell);
  EXPECT_EQ(answer.sentence.rfind("cannot be told: the client on far began 99", 0), 0U)
      << answer.sentence;
}

TEST_F(HostsTest, AClientMayNotBeginASecondLate) {
  const Answer answer = answer_of({"far"}, R"(
for word; do case $word in --start-at=*) at=${word#*=} ;; esac; done
echo "{\"runs\": [{\"started_at_unix_s\": $((${at%.*} + 1)).${at#*.}}]}"
)");
  EXPECT_EQ(answer.verdict, Answer::Verdict::cannot_tell);
  EXPECT_EQ(answer.sentence, "cannot be told: the client on far began 1.000 s late");
}

// Its own result is not one that can be merged.
TEST_F(HostsTest, TimesAreTranslatedToThisClock) {
  folder_.write("base-merged.json", "{}");  // that of an experiment before
  add_program("offload-report", "#!/bin/sh\necho nothing to merge; exit 1\n");
  const auto error = support::thrown_by([&] {
    answer_of({"one", "it's"},
              "echo \"$@\" >&2; echo '{\"runs\": [{\"started_at_unix_s\": 5.0}, {}]}'\n");
  });
  EXPECT_EQ(error.code(), core::ErrorCode::io_failed);
  EXPECT_EQ(std::string(error.what()).rfind("no merged result: ", 0), 0U) << error.what();
  EXPECT_EQ(result_, "");
  EXPECT_FALSE(std::filesystem::exists(folder_.file("base-merged.json")));
  ASSERT_EQ(clocks_.size(), 2U);
  const std::array files = {"base-client-1-one", "base-client-2-it-s"};
  for (std::size_t i = 0; i < files.size(); ++i) {
    EXPECT_NEAR(clocks_[i].clock.offset, 5 - unix_now(), 60);
    const auto json = nlohmann::json::parse(folder_.read(std::string(files[i]) + ".json"));
    EXPECT_DOUBLE_EQ(json["runs"][0]["started_at_unix_s"], 5 - clocks_[i].clock.offset);
    EXPECT_DOUBLE_EQ(json["runs"][1]["started_at_unix_s"], -clocks_[i].clock.offset);
    const std::string words = folder_.read(std::string(files[i]) + ".log");
    EXPECT_EQ(words.rfind("--server-ip-address=127.0.0.1 --server-ip-port=7 --size=64 "
                          "--duration=1000000us --quiet --seed=" +
                              std::to_string(7 + i) + " --start-at=",
                          0),
              0U)
        << words;
    const std::size_t start = words.find("--start-at=") + 11;
    EXPECT_NEAR(std::stod(words.substr(start)), 5 + 3, 60);
    EXPECT_NE(words.find(" --output=-\n"), std::string::npos) << words;
  }
}

using HostsDeathTest = HostsTest;

TEST_F(HostsDeathTest, ASignalEndsTheWaitForTheClients) {
  EXPECT_EXIT(
      {
        ::kill(::getpid(), SIGTERM);
        const Answer answer = answer_of({"far"}, "exec sleep 1000");
        std::_Exit(answer.verdict == Answer::Verdict::interrupted ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace offload::client
