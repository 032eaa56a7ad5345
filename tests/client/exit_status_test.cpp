#include "apps/client/exit_status.hpp"

#include <gtest/gtest.h>

namespace offload::client {
namespace {

using Code = LoadVerdict::Code;

Campaign campaign_of(const std::vector<Code>& verdicts) {
  Campaign campaign;
  for (const Code code : verdicts) campaign.runs.emplace_back().verdict.code = code;
  return campaign;
}

int status_after(const std::vector<Code>& verdicts, const Options& options = {}) {
  return status_of(campaign_of(verdicts), options);
}

TEST(ExitStatus, TheWorstVerdictOfTheRunsDecides) {
  EXPECT_EQ(status_after({Code::kept_up, Code::closed_loop}), 0);
  EXPECT_EQ(status_after({Code::too_few, Code::kept_up}), 5);
  EXPECT_EQ(status_after({Code::server_late, Code::kept_up}), 3);
  EXPECT_EQ(status_after({Code::server_late, Code::too_few}), 3);
  EXPECT_EQ(status_after({Code::too_few, Code::server_late}), 3);
  EXPECT_EQ(status_after({Code::client_late, Code::server_late}), 4);
  EXPECT_EQ(status_after({Code::server_late, Code::too_few, Code::client_late}), 4);
}

TEST(ExitStatus, ErrorsComeBeforeASignalAndBothBeforeVerdicts) {
  Campaign campaign = campaign_of({Code::server_late, Code::cut_short});
  campaign.runs.back().interrupted = true;
  EXPECT_EQ(status_of(campaign, {}), 130);
  campaign.runs.front().total->errors.add(ErrorKind::mismatch);
  EXPECT_EQ(status_of(campaign, {}), 1);
}

TEST(ExitStatus, AScanOrASearchMayReachTheServersLimit) {
  Options scan;
  scan.scan.emplace();
  EXPECT_EQ(status_after({Code::kept_up, Code::server_late}, scan), 0);
  Options search;
  search.search.emplace();
  Campaign campaign = campaign_of({Code::kept_up, Code::server_late});
  campaign.search.emplace().rate = 1000;
  EXPECT_EQ(status_of(campaign, search), 0);
  campaign.search->rate.reset();
  EXPECT_EQ(status_of(campaign, search), 1) << "no rate was found";
}

}  // namespace
}  // namespace offload::client
