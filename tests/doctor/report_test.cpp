#include "apps/doctor/report.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace offload::doctor {
namespace {

const Findings kFindings{{Severity::good, "clock", "tsc", "", ""},
                         {Severity::warning, "governor", "slow\x1b[2J", "fast", "be fast"}};

TEST(Report, TextSaysWhatToDo) {
  EXPECT_EQ(make_text(kFindings),
            "good     clock     tsc\n"
            "warning  governor  slow\\x1b[2J\n"
            "                   expected: fast\n"
            "                   to fix:   be fast\n");
}

TEST(Report, JsonHasAllOfIt) {
  const auto object = nlohmann::json::parse(make_json(kFindings));
  EXPECT_EQ(object["program"], "offload-doctor");
  EXPECT_EQ(object["worst"], "warning");
  ASSERT_EQ(object["findings"].size(), 2U);
  EXPECT_EQ(object["findings"][1]["mend"], "be fast");
}

TEST(Report, TheWorstIsTheExitStatus) {
  EXPECT_EQ(exit_status(worst_of({})), 0);
  EXPECT_EQ(exit_status(Severity::note), 0);
  EXPECT_EQ(exit_status(worst_of(kFindings)), 3);
  EXPECT_EQ(exit_status(Severity::error), 4);
}

}  // namespace
}  // namespace offload::doctor
