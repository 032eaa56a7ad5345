#include "apps/client/run/verdict.hpp"

#include <gtest/gtest.h>

namespace offload::client {
namespace {

using namespace std::chrono_literals;
using Code = LoadVerdict::Code;

/// 10,000 requests, 1 % of which may be late.
LoadSeen seen() {
  LoadSeen seen;
  seen.offered = 1000;
  seen.achieved = 990;
  seen.timed = 10'000;
  seen.due = 10'000;
  seen.tolerance = 1ms;
  seen.busy = 0.5;
  return seen;
}

TEST(Verdict, AClosedLoopSaysThatItCannotTell) {
  LoadSeen closed = seen();
  closed.offered.reset();
  auto verdict = judge_load(closed);
  EXPECT_EQ(verdict.code, Code::closed_loop);
  EXPECT_NE(verdict.text.find("no response time"), std::string::npos) << verdict.text;
  EXPECT_EQ(verdict.text.find("busy"), std::string::npos);
  closed.busy = 0.95;
  EXPECT_EQ(judge_load(closed).text.find("busy"), std::string::npos);
  closed.busy = 0.99;
  EXPECT_NE(judge_load(closed).text.find("99 % busy"), std::string::npos);
}

TEST(Verdict, FewLateRequestsAreNobodysFault) {
  LoadSeen few = seen();
  few.noticed_late = 100;
  few.held_back = 100;
  const auto verdict = judge_load(few);
  EXPECT_EQ(verdict.code, Code::kept_up);
  EXPECT_EQ(verdict.text, "offered 1000.0/s, achieved 990.0/s: the server kept up");
}

TEST(Verdict, TheClientNoticedTooLate) {
  LoadSeen late = seen();
  late.noticed_late = 1000;
  late.held_back = 500;  // some waited behind those
  late.lag_p99 = 899ms;
  const auto verdict = judge_load(late);
  EXPECT_EQ(verdict.code, Code::client_late);
  EXPECT_NE(verdict.text.find("this client was late: it noticed 10.0 %"), std::string::npos);
  EXPECT_NE(verdict.text.find("p99 899.000 ms"), std::string::npos) << verdict.text;
}

TEST(Verdict, TheP99OfTheLagNeedsAHundredRequests) {
  LoadSeen late = seen();
  late.noticed_late = 10;
  late.lag_p99 = 5ms;
  late.due = 99;
  EXPECT_EQ(judge_load(late).text.find("p99"), std::string::npos) << judge_load(late).text;
  late.due = 100;
  EXPECT_NE(judge_load(late).text.find("(p99 5.000 ms)"), std::string::npos)
      << judge_load(late).text;
}

TEST(Verdict, RequestsHadToWaitForResponses) {
  LoadSeen late = seen();
  late.held_back = 407;
  late.never_sent = 7;
  auto verdict = judge_load(late);
  EXPECT_EQ(verdict.code, Code::server_late);
  EXPECT_NE(verdict.text.find("4.1 % of the requests"), std::string::npos) << verdict.text;
  late.busy = 0.95;
  EXPECT_EQ(judge_load(late).code, Code::server_late);
  late.busy = 0.96;  // as this client took them late
  verdict = judge_load(late);
  EXPECT_EQ(verdict.code, Code::client_late);
  EXPECT_NE(verdict.text.find("96 % busy"), std::string::npos) << verdict.text;
}

TEST(Verdict, ALateServerIsNamedBesideALaterClient) {
  LoadSeen both = seen();
  both.noticed_late = 1000;
  both.held_back = 500;
  const auto verdict = judge_load(both);
  EXPECT_EQ(verdict.code, Code::client_late);
  EXPECT_NE(verdict.text.find("the server was late, too: 5.0 % of the requests waited"),
            std::string::npos)
      << verdict.text;
}

TEST(Verdict, WhoMadeMoreOfThemLateIsNamed) {
  LoadSeen both = seen();
  both.noticed_late = 500;
  both.held_back = 1000;
  const auto verdict = judge_load(both);
  EXPECT_EQ(verdict.code, Code::server_late);
  EXPECT_NE(verdict.text.find("the client also noticed 5.0 %"), std::string::npos) << verdict.text;
}

TEST(Verdict, WhereBothWereLateAlikeBothAreNamed) {
  LoadSeen both = seen();
  both.noticed_late = 500;
  both.held_back = 500;
  const auto verdict = judge_load(both);
  EXPECT_EQ(verdict.code, Code::server_late);
  EXPECT_NE(verdict.text.find("the client also"), std::string::npos) << verdict.text;
}

// They were all sent in time, as the windows were wide; but the answers did not keep up.
TEST(Verdict, ABacklogIsTheServers) {
  LoadSeen late = seen();
  late.unfinished = 5000;
  const auto verdict = judge_load(late);
  EXPECT_EQ(verdict.code, Code::server_late);
  EXPECT_NE(verdict.text.find("5000 had no response"), std::string::npos) << verdict.text;
}

/// The code for a load of `due` requests, of which `late` are late in one way.
Code code_of(std::uint64_t due, std::uint64_t late, std::uint64_t LoadSeen::*way) {
  LoadSeen run = seen();
  run.due = due;
  run.*way = late;
  return judge_load(run).code;
}

TEST(Verdict, ASingleLateRequestAmongFewTellsNothing) {
  for (const auto way : {&LoadSeen::noticed_late, &LoadSeen::held_back, &LoadSeen::unfinished}) {
    const Code late = way == &LoadSeen::noticed_late ? Code::client_late : Code::server_late;
    EXPECT_EQ(code_of(0, 0, way), Code::too_few);
    for (std::uint64_t due = 1; due <= 200; ++due) {
      EXPECT_EQ(code_of(due, 0, way), Code::kept_up) << due;
      EXPECT_EQ(code_of(due, 1, way), due < 100 ? Code::too_few : Code::kept_up) << due;
      EXPECT_EQ(code_of(due, 2, way), due < 200 ? late : Code::kept_up) << due;
      EXPECT_EQ(code_of(due, due, way), due == 1 ? Code::too_few : late) << due;
    }
  }
}

TEST(Verdict, SaysWhyItCannotTell) {
  LoadSeen few = seen();
  few.due = 40;
  few.held_back = 1;
  const auto verdict = judge_load(few);
  EXPECT_NE(verdict.text.find("too few requests for a verdict: 1 of 40 was late"),
            std::string::npos)
      << verdict.text;
  few.due = few.held_back = 0;
  EXPECT_NE(judge_load(few).text.find("none was due"), std::string::npos);
}

TEST(Verdict, AnOpenLoopNeedsAHundredRightResponses) {
  LoadSeen few = seen();
  few.due = 100;
  for (few.timed = 0; few.timed < 100; ++few.timed) {
    const auto verdict = judge_run(few);
    ASSERT_EQ(verdict.code, Code::too_few) << few.timed;
    EXPECT_EQ(verdict.text.find("kept up"), std::string::npos) << verdict.text;
  }
  EXPECT_EQ(judge_run(few).code, Code::kept_up);
  few.timed = 5;
  EXPECT_EQ(judge_run(few).text,
            "offered 1000.0/s, achieved 990.0/s: too few requests for a verdict: 5 right "
            "responses, and 100 are needed");
  few.held_back = 2;  // that much is known
  EXPECT_EQ(judge_run(few).code, Code::server_late);
  few.held_back = 0;
  few.noticed_late = 2;
  EXPECT_EQ(judge_run(few).code, Code::client_late);
}

TEST(Verdict, AClosedLoopSaysThatItsResponsesAreFew) {
  LoadSeen closed = seen();
  closed.offered.reset();
  closed.timed = 100;
  EXPECT_EQ(judge_run(closed).text.find("too few"), std::string::npos);
  closed.timed = 1;
  EXPECT_EQ(judge_run(closed).code, Code::closed_loop);
  EXPECT_NE(judge_run(closed).text.find(
                "too few for a p99 or a comparison: 1 right response, and 100 are needed"),
            std::string::npos)
      << judge_run(closed).text;
}

TEST(Verdict, HasANameForEachCode) {
  EXPECT_EQ(name_of(Code::kept_up), "kept_up");
  EXPECT_EQ(name_of(Code::cut_short), "cut_short");
  EXPECT_EQ(name_of(Code::too_few), "too_few");
}

}  // namespace
}  // namespace offload::client
