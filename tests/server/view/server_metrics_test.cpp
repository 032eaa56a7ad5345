#include "apps/server/view/server_metrics.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "telemetry/trace.hpp"
#include "tests/support/log_capture.hpp"

namespace offload::server {
namespace {

/// Each reason alone makes the server not ready, and the first of several is told.
TEST(ServerMetrics, AreReadyWhileClientsAreLetInAndAnswered) {
  ServerMetrics metrics({"echo"}, core::Duration{}, true);
  const auto now = core::Clock::now();
  EXPECT_EQ(metrics.readiness().why, "no worker answers");
  metrics.note_turn(now, true, false);
  EXPECT_TRUE(metrics.readiness().holds);
  metrics.note_room(false);
  EXPECT_FALSE(metrics.readiness().holds);
  EXPECT_EQ(metrics.readiness().why, "there is no room for another client");
  metrics.note_drained(true);
  EXPECT_EQ(metrics.readiness().why, "drained by a command");
  metrics.note_turn(now, true, true);
  EXPECT_FALSE(metrics.readiness().holds);
  EXPECT_EQ(metrics.readiness().why, "the server is shutting down");
  metrics.note_turn(now, true, false);
  metrics.note_drained(false);
  metrics.note_room(true);
  EXPECT_TRUE(metrics.readiness().holds);
}

/// Two threads of separate services, with different counts.
class ServerMetricsTest : public testing::Test {
 protected:
  [[nodiscard]] ThreadMetrics& thread(std::size_t index) { return *metrics_.thread(index); }
  [[nodiscard]] bool has_line(const std::string& line, bool per_thread = false) const {
    telemetry::Exposition page(per_thread);
    metrics_.collect(page);
    return ("\n" + page.text()).find("\n" + line + "\n") != std::string::npos;
  }

  support::LogCapture log_;
  ServerMetrics metrics_{{"echo", "hash"}, std::chrono::milliseconds(5), true};
};

TEST_F(ServerMetricsTest, OfBothThreadsAreAddedUp) {
  constexpr auto kBusy = static_cast<std::size_t>(protocol::Refusal::busy);
  constexpr auto kStuck = static_cast<std::size_t>(protocol::Refusal::worker_stuck);
  thread(0).requests.set(3);
  thread(1).requests.set(5);
  thread(0).refused[kBusy].set(1);
  thread(1).refused[kBusy].set(6);
  thread(1).refused[kStuck].set(1);
  thread(0).closed[1].set(2);
  thread(1).closed[1].set(2);
  for (std::size_t i = 0; i < 2; ++i) {
    thread(i).duration.record(std::chrono::nanoseconds(1));
    thread(i).stages[2].record(core::seconds(20));
  }
  const nlohmann::json status = metrics_.status();
  EXPECT_EQ(status["totals"]["requests"], 8);
  EXPECT_EQ(status["totals"]["errors"], 8);
  EXPECT_EQ(status["errors"], nlohmann::json({{"busy", 7}, {"worker_stuck", 1}}));
  EXPECT_EQ(status["closed"]["reset"], 4);
  EXPECT_EQ(status["stages"]["request"].front(), 2);
  EXPECT_EQ(status["stages"]["worker"].back(), 2);
  EXPECT_EQ(status["stages"]["send"].back(), 0);
  EXPECT_EQ(status["threads"].at(1)["service"], "hash");
  EXPECT_EQ(status["threads"].at(1)["requests"], 5);
}

TEST_F(ServerMetricsTest, OfSeveralServicesAreToldApart) {
  thread(0).requests.set(3);
  thread(1).requests.set(5);
  thread(1).refused[static_cast<std::size_t>(protocol::Refusal::busy)].set(2);
  thread(1).closed[1].set(4);
  EXPECT_TRUE(has_line("offload_server_requests_total{service=\"echo\"} 3"));
  EXPECT_TRUE(has_line("offload_server_requests_total{service=\"hash\"} 5"));
  EXPECT_TRUE(has_line("offload_server_responses_total{service=\"hash\",result=\"busy\"} 2"));
  EXPECT_FALSE(has_line("offload_server_responses_total{service=\"echo\",result=\"busy\"} 0"));
  EXPECT_TRUE(
      has_line("offload_server_connections_closed_total{service=\"hash\",reason=\"reset\"} 4"));
}

TEST_F(ServerMetricsTest, HaveTheTimesAndChannelsOfEachThread) {
  for (std::size_t i = 0; i < 2; ++i) {
    thread(i).request_bytes.record(100 * (i + 1));
    thread(i).duration.record(std::chrono::milliseconds(500));
    thread(i).stages[3].record(core::seconds(1));
    thread(i).responses.set(i + 4);
    thread(i).slots.set(8);
    thread(i).times.stalls.set(i + 1);
    thread(i).tls_failures[1].set(i + 2);
    thread(i).closed[0].set(i + 6);
  }
  for (const char* line :
       {"offload_server_request_bytes_sum{service=\"echo\"} 100",
        "offload_server_request_bytes_sum{service=\"hash\"} 200",
        "offload_server_request_duration_seconds_sum{service=\"echo\"} 0.5",
        "offload_server_request_duration_seconds_sum{service=\"hash\"} 0.5",
        "offload_server_stage_duration_seconds_sum{service=\"echo\",stage=\"send\"} 1",
        "offload_server_stage_duration_seconds_sum{service=\"hash\",stage=\"receive\"} 0",
        "offload_server_responses_total{service=\"echo\",result=\"ok\"} 4",
        "offload_server_responses_total{service=\"hash\",result=\"ok\"} 5",
        "offload_server_tls_failures_total{service=\"hash\",reason=\"certificate\"} 3",
        "offload_server_connections_closed_total{service=\"hash\",reason=\"peer\"} 7",
        "offload_server_stalls_total{service=\"hash\"} 2"}) {
    EXPECT_TRUE(has_line(line)) << line;
  }
  EXPECT_TRUE(has_line("offload_channel_slots{channel=\"1\",service=\"hash\"} 8", true));
  const nlohmann::json status = metrics_.status();
  EXPECT_EQ(status["totals"]["responses"], 9);
  EXPECT_EQ(status["closed"]["peer"], 13);
  EXPECT_EQ(status["stages"].size(), kStages.size() + 1);
  EXPECT_EQ(status["stages"]["receive"].back(), 0);
  EXPECT_EQ(status["threads"].at(0)["slots"], 8);
  EXPECT_EQ(status["threads"].at(1)["stalls"], 2);
  EXPECT_EQ(status["threads"].at(1)["responses"], 5);
}

TEST_F(ServerMetricsTest, OfTheControlThreadAreOnThePageAndInTheStatus) {
  metrics_.control().stalls.set(3);
  metrics_.control().longest_turn.set(1'500'000'000);
  EXPECT_TRUE(has_line("offload_server_control_stalls_total 3"));
  EXPECT_TRUE(has_line("offload_server_control_longest_turn_seconds 1.5"));
  EXPECT_EQ(metrics_.status()["control"]["stalls"], 3);
  EXPECT_EQ(metrics_.status()["control"]["longest_turn_ns"], 1'500'000'000);
}

TEST_F(ServerMetricsTest, EachThreadHasTheLimitOfItsTurns) {
  EXPECT_EQ(thread(0).times.stall_limit, 5'000'000U);
  EXPECT_EQ(thread(1).times.stall_limit, 5'000'000U);
  EXPECT_EQ(metrics_.control().stall_limit, 5'000'000U);
}

TEST_F(ServerMetricsTest, KnowWhetherTheControlThreadTurnsAndWhetherItIsReady) {
  EXPECT_TRUE(has_line("offload_server_ready 0"));
  metrics_.note_turn(core::Clock::now(), true, false);
  EXPECT_TRUE(metrics_.health().holds);
  EXPECT_TRUE(has_line("offload_server_ready 1"));
}

TEST_F(ServerMetricsTest, ASlowRequestIsTheExemplarOfItsBucket) {
  for (std::size_t i = 0; i < 2; ++i) {
    thread(i).last_slow[9].add({700'000, 7 + i, 3, 1'764'259'200'123'000'000});
  }
  telemetry::Exposition page(false);
  metrics_.collect(page);
  for (const char* line :
       {"{service=\"echo\",le=\"0.001\"} 0 # {client=\"7\",slow_request=\"3\"} 0.0007 "
        "1764259200.123\n",
        "{service=\"hash\",le=\"0.001\"} 0 # {client=\"8\",slow_request=\"3\"} 0.0007 "
        "1764259200.123\n"}) {
    EXPECT_NE(page.open_metrics().find(line), std::string::npos) << line;
  }
}

TEST_F(ServerMetricsTest, KnowWhichWorkersHaveTheNewestKey) {
  metrics_.note_newest_key("new");
  metrics_.note_attached({1, false, false, {}, "cpu", "new"}, "1");
  metrics_.note_attached({2, false, false, {}, "cpu", "old"}, "2");
  metrics_.note_attached({3, false, false, {}, "cpu"}, "3");
  const nlohmann::json status = metrics_.status();
  EXPECT_EQ(status["workers"][0]["key"], "new");
  EXPECT_EQ(status["workers"][0]["has_newest_key"], true);
  EXPECT_EQ(status["workers"][0]["channels"], 0);
  EXPECT_EQ(status["workers"][1]["has_newest_key"], false);
  EXPECT_FALSE(status["workers"][2].contains("key"));
}

TEST_F(ServerMetricsTest, TheEventsTellOfCommands) {
  metrics_.note_drained(true);
  metrics_.note_drained(false);
  const nlohmann::json status = metrics_.status();
  ASSERT_EQ(status["events"].size(), 2U);
  EXPECT_EQ(status["events"][0]["text"], "drained by a command");
  EXPECT_EQ(status["events"][1]["text"], "drain cancelled");
}

TEST_F(ServerMetricsTest, KnowTheWorkersThatAreThere) {
  metrics_.note_attached({1, false, false, {}, "cuda"}, "1, process 7");
  metrics_.note_attached({2, true, false, {}, "cpu"}, "2, process 8");
  metrics_.note_serving(1, 4);
  metrics_.note_serving(3, 4);
  metrics_.note_lost(2);
  metrics_.note_lost(3);
  const nlohmann::json status = metrics_.status();
  ASSERT_EQ(status["workers"].size(), 1U);
  EXPECT_EQ(status["workers"][0]["worker"], 1);
  EXPECT_EQ(status["workers"][0]["name"], "1, process 7");
  EXPECT_EQ(status["workers"][0]["backend"], "cuda");
  EXPECT_EQ(status["workers"][0]["channels"], 4);
  ASSERT_EQ(status["events"].size(), 3U);
  EXPECT_EQ(status["events"][1]["text"], "worker 2, process 8 attached, as a stand-by");
  EXPECT_EQ(status["events"][2]["text"], "worker 2, process 8 is gone");
  EXPECT_TRUE(has_line("offload_server_workers_attached 1"));
  EXPECT_TRUE(has_line("offload_server_workers_attaches_total 2"));
  EXPECT_TRUE(has_line("offload_server_workers_losses_total 2"));
}

// The engine finds a turn too long when the next one begins: then the work is that before it.
TEST_F(ServerMetricsTest, ALongTurnIsReportedOnceWithItsWork) {
  const auto now = core::Clock::now();
  metrics_.note_attached({1, false, false, {}, "cpu"}, "1");
  metrics_.note_command();
  metrics_.note_turn(now, true, false);
  metrics_.note_reload();
  metrics_.control().last_stall.set(7'500'000);
  metrics_.control().stalls.set(1);
  metrics_.note_turn(now, true, false);
  EXPECT_TRUE(
      log_.has("warning: control thread: a turn took 7.5 ms, with 1 workers attached, "
               "0 gone, 1 commands, 0 reloads"))
      << log_.text();
  EXPECT_EQ(metrics_.status()["events"].size(), 2U);
  log_.clear();
  metrics_.note_turn(now + core::seconds(60), true, false);
  EXPECT_EQ(log_.text(), "");
}

TEST_F(ServerMetricsTest, ALongTurnIsReportedWithAllOfItsWork) {
  const auto now = core::Clock::now();
  for (comch::WorkerId worker = 1; worker <= 2; ++worker) {
    metrics_.note_attached({worker, false, false, {}, "cpu"}, "1");
    metrics_.note_lost(worker);
    metrics_.note_command();
    metrics_.note_reload();
  }
  metrics_.note_reload();
  metrics_.note_turn(now, true, false);
  metrics_.control().last_stall.set(7'500'000);
  metrics_.control().stalls.set(1);
  metrics_.note_turn(now, true, false);
  EXPECT_TRUE(log_.has("with 2 workers attached, 2 gone, 2 commands, 3 reloads")) << log_.text();
}

TEST_F(ServerMetricsTest, TheTraceNamesEachThread) {
  thread(0).samples.add({1000, 3000, 4000, 8000, 9000, 64});
  thread(1).samples.add({1000, 3000, 4000, 8000, 9000, 64});
  telemetry::Trace trace("offload-server");
  metrics_.trace(trace);
  EXPECT_NE(trace.text().find("\"I/O thread 0\""), std::string::npos);
  EXPECT_NE(trace.text().find("\"I/O thread 1\""), std::string::npos);
}

TEST_F(ServerMetricsTest, TheTraceHasTheStagesOfARequest) {
  thread(1).samples.add({1000, 3000, 4000, 8000, 9000, 64});
  telemetry::Trace trace("offload-server");
  metrics_.trace(trace);
  const auto events = nlohmann::json::parse(trace.text())["traceEvents"];
  std::string spans;
  for (const auto& event : events) {
    if (event["ph"] != "X") continue;
    spans += event["name"].get<std::string>() + " " + event["ts"].dump() + "+" +
             event["dur"].dump() + ";";
  }
  EXPECT_EQ(spans, "request 1.0+8.0;receive 1.0+2.0;queue 3.0+1.0;worker 4.0+4.0;send 8.0+1.0;");
}

}  // namespace
}  // namespace offload::server
