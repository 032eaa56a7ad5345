#include "cli/nearest.hpp"

#include <gtest/gtest.h>

namespace offload::cli {
namespace {

const std::vector<std::string>& options() {
  static const std::vector<std::string> names{
      "--comch",       "--comch-key-file", "--metrics", "--server-listen-port",
      "--max-clients", "--frame-timeout",  "--cpu",     "-p"};
  return names;
}

TEST(Nearest, FewLettersAreWrong) {
  EXPECT_EQ(nearest("--metric", options()), std::vector<std::string>{"--metrics"});
  EXPECT_EQ(nearest("--mertics", options()), std::vector<std::string>{"--metrics"});
  EXPECT_EQ(nearest("--max-client", options()), std::vector<std::string>{"--max-clients"});
  EXPECT_EQ(nearest("--frame_timeout", options()), std::vector<std::string>{"--frame-timeout"});
  EXPECT_EQ(nearest("--comhc", options()), std::vector<std::string>{"--comch"});
}

TEST(Nearest, APartOfTheNameIsGiven) {
  EXPECT_EQ(nearest("--port", options()), std::vector<std::string>{"--server-listen-port"});
  EXPECT_EQ(nearest("--listen-port", options()), std::vector<std::string>{"--server-listen-port"});
  EXPECT_EQ(nearest("--key-file", options()), std::vector<std::string>{"--comch-key-file"});
  EXPECT_EQ(nearest("--cpu-list", options()), std::vector<std::string>{"--cpu"});
}

TEST(Nearest, TheBeginningOfTheNameIsGiven) {
  EXPECT_EQ(nearest("--server", options()), std::vector<std::string>{"--server-listen-port"});
  EXPECT_EQ(nearest("--metr", options()), std::vector<std::string>{"--metrics"});
  EXPECT_TRUE(nearest("--se", options()).empty());
}

TEST(Nearest, LettersThatAreLeftOverCount) {
  EXPECT_TRUE(nearest("--xyzmetrics", options()).empty());
  EXPECT_TRUE(nearest("--metxxxrics", options()).empty());
  EXPECT_EQ(nearest("--xymetrics", options()), std::vector<std::string>{"--metrics"});
}

// Every third letter of the shorter one may be wrong.
TEST(Nearest, OfAShortNameFewLettersMayBeWrong) {
  EXPECT_EQ(nearest("port", {"sport"}), std::vector<std::string>{"sport"});
  EXPECT_TRUE(nearest("port", {"sporty"}).empty());
  EXPECT_TRUE(nearest("sporty", {"port"}).empty());
}

TEST(Nearest, ThreeAreNamedAtMost) {
  EXPECT_EQ(nearest("cpux", {"cpu1", "cpu2", "cpu3", "cpu4"}),
            (std::vector<std::string>{"cpu1", "cpu2", "cpu3"}));
}

TEST(Nearest, MuchFartherOnesAreLeftOut) {
  EXPECT_EQ(nearest("port", {"port-ab", "ports", "port-a"}),
            (std::vector<std::string>{"ports", "port-a"}));
  EXPECT_EQ(nearest("port", {"port-ab"}), std::vector<std::string>{"port-ab"});
}

TEST(Nearest, ALongWordIsNoMisspeltOption) {
  const std::string longest(64, 'm');
  EXPECT_EQ(nearest(longest, {longest}), std::vector<std::string>{longest});
  EXPECT_TRUE(nearest(longest + 'm', {longest}).empty());
}

TEST(Nearest, NothingIsNear) {
  EXPECT_TRUE(nearest("--verbose", options()).empty());
  EXPECT_TRUE(nearest("--", options()).empty());
  EXPECT_TRUE(nearest("-x", options()).empty());
  EXPECT_TRUE(nearest(std::string(1000, 'm'), options()).empty());
  EXPECT_EQ(did_you_mean("--verbose", options()), "");
}

TEST(Nearest, SaysWhatWasMeant) {
  EXPECT_EQ(did_you_mean("--metric", options()), "; did you mean --metrics?");
  EXPECT_EQ(did_you_mean("ab", {"abc", "abd"}), "; did you mean abc or abd?");
}

}  // namespace
}  // namespace offload::cli
