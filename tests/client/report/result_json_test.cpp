#include "apps/client/report/result_json.hpp"

#include <gtest/gtest.h>
#include <sys/utsname.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "metrics/hdr_codec.hpp"
#include "tests/client/report/sample_campaign.hpp"

namespace offload::client {
namespace {

using namespace std::chrono_literals;

Options options_of(bool open_loop) {
  Options options;
  options.server_address = "::1";
  options.sizes = SizeMix{{64, 1}};
  options.sizes_text = "64";
  if (open_loop) options.rate = 2;
  return options;
}

Options options_of_search() {
  Options options = options_of(true);
  options.search = Search{"p99", 0.99, 1ms};
  return options;
}

TEST(ResultJson, SaysWhatRanWhereAndHow) {
  const auto json =
      make_json(options_of(false), sample_campaign(false), {"offload-client", "-s"}, "");
  EXPECT_EQ(json.at("program"), "offload-client");
  EXPECT_EQ(json.at("format"), 1);
  EXPECT_FALSE(json.at("revision").get<std::string>().empty());
  EXPECT_EQ(json.at("command_line").size(), 2U);
  EXPECT_GT(json.at("machine").at("processors"), 0);
  utsname system{};
  ASSERT_EQ(::uname(&system), 0);
  EXPECT_EQ(json.at("machine").at("host"), system.nodename);
  std::ifstream processors("/proc/cpuinfo");
  std::string line;
  while (std::getline(processors, line) && !line.starts_with("model name")) continue;
  const auto processor = json.at("machine").at("processor").get<std::string>();
  EXPECT_EQ(processor, processors ? line.substr(line.find(": ") + 2) : std::string());
  EXPECT_EQ(json.at("status"), "failed");
  EXPECT_EQ(json.at("faults").at(0), "thread 0, request 1: ...");
  const auto& options = json.at("options");
  EXPECT_EQ(options.at("sizes"), "64");
  EXPECT_EQ(options.at("iteration_count"), 10'000);
  EXPECT_TRUE(options.at("duration_seconds").is_null());
  EXPECT_EQ(options.at("payload"), "random");
  EXPECT_EQ(options.at("service"), "reverse");
  EXPECT_EQ(options.at("on_error"), "stop");
}

TEST(ResultJson, TheServersFiguresAreThoseOfItsShare) {
  Campaign campaign = sample_campaign(false);
  campaign.server.emplace();
  campaign.server->requests = 7;
  const auto json = make_json(options_of(false), campaign, {}, "");
  EXPECT_EQ(json.at("server").at("requests"), 7);
}

TEST(ResultJson, ADurationOrAScheduleHasNoCount) {
  const auto options_told = [](const Options& options) {
    return make_json(options, sample_campaign(true), {}, "").at("options");
  };
  Options timed = options_of(true);
  timed.duration = 2s;
  EXPECT_TRUE(options_told(timed).at("iteration_count").is_null());
  EXPECT_EQ(options_told(timed).at("duration_seconds"), 2.0);
  Options replayed = options_of(true);
  replayed.schedule = "file";
  EXPECT_TRUE(options_told(replayed).at("iteration_count").is_null());
}

TEST(ResultJson, ARun) {
  const auto json = make_json(options_of(true), sample_campaign(true), {}, "");
  const auto& run = json.at("runs").at(0);
  EXPECT_EQ(run.at("offered_per_second"), 2.0);
  EXPECT_EQ(run.at("arrivals"), "constant");
  EXPECT_EQ(run.at("operation_count"), 3);
  EXPECT_EQ(run.at("valid_responses"), 2);
  EXPECT_EQ(run.at("unanswered_requests"), 1);
  EXPECT_EQ(run.at("errors"), (nlohmann::ordered_json{{"mismatch", 1}}));
  EXPECT_DOUBLE_EQ(run.at("duration_seconds"), 2.0);
  EXPECT_EQ(run.at("tx_bytes"), (std::uint64_t{4} << 30) + 48);
  EXPECT_EQ(run.at("rx_bytes"), (std::uint64_t{3} << 30) + 36);
  EXPECT_DOUBLE_EQ(run.at("tx_data_rate_gib_s"), 2.0);
  EXPECT_DOUBLE_EQ(run.at("rx_data_rate_gib_s"), 1.5);
  EXPECT_DOUBLE_EQ(run.at("tx_wire_rate_gib_s"), 2.0 + 24 / kGiB);
  EXPECT_DOUBLE_EQ(run.at("rx_wire_rate_gib_s"), 1.5 + 18 / kGiB);
  EXPECT_DOUBLE_EQ(run.at("service_time_us").at("min"), 100.0);
  EXPECT_DOUBLE_EQ(run.at("response_time_us").at("max"), 1500.0);
  EXPECT_EQ(run.at("schedule_lag_us").at("count"), 0);
  EXPECT_EQ(run.at("verdict").at("code"), "kept_up");
  const auto histogram =
      metrics::decode_hdr(run.at("service_time_us").at("histogram").get<std::string>());
  EXPECT_EQ(histogram.count(), 2U);
  const auto& second = run.at("intervals").at(0);
  EXPECT_DOUBLE_EQ(second.at("start_s"), 0.5);
  EXPECT_EQ(second.at("operations"), 3);
  EXPECT_DOUBLE_EQ(second.at("response_time_us").at("max"), 1500.0);
}

TEST(ResultJson, AClosedLoopHasNoResponseTime) {
  const auto json = make_json(options_of(false), sample_campaign(false), {}, "");
  const auto& run = json.at("runs").at(0);
  EXPECT_TRUE(run.at("offered_per_second").is_null());
  EXPECT_TRUE(run.at("response_time_us").is_null());
  EXPECT_TRUE(run.at("schedule_lag_us").is_null());
  EXPECT_TRUE(run.at("intervals").at(0).at("response_time_us").is_null());
}

TEST(ResultJson, ASearchIsJudgedByWhatItFound) {
  auto campaign = sample_campaign(true);  // with an error, as an overloaded server has
  campaign.search.emplace();
  EXPECT_EQ(make_json(options_of_search(), campaign, {}, "").at("status"), "failed");
  campaign.search->rate = 1000;
  const auto json = make_json(options_of_search(), campaign, {}, "");
  EXPECT_EQ(json.at("status"), "ok");
  EXPECT_EQ(json.at("search").at("rate"), 1000.0);
}

TEST(ResultJson, Status) {
  const auto status = [](const Campaign& campaign, const std::string& failure) {
    return make_json(options_of(false), campaign, {}, failure).at("status").get<std::string>();
  };
  Campaign fine;
  fine.runs.emplace_back();
  EXPECT_EQ(status(fine, ""), "ok");
  EXPECT_EQ(status(fine, "cannot connect"), "failed");
  fine.runs.back().interrupted = true;
  EXPECT_EQ(status(fine, ""), "interrupted");
  EXPECT_EQ(make_json(options_of(false), {}, {}, "no server").at("faults").at(0), "no server");
}

// Each figure has a value that no other has.
TEST(ResultJson, EachFigureHasItsPlace) {
  Options options = options_of(true);
  options.thread_count = 3;
  options.connections = 5;
  options.warmup = 4s;
  auto campaign = sample_campaign(true);
  RunResult& result = campaign.runs[0];
  result.udp = true;
  result.busy = 0.125;
  Interval& total = *result.total;
  total.in_flight_ns = 3e9;
  total.lost = 31;
  total.duplicates = 32;
  total.late_answers = 33;
  total.sent_again = 34;
  total.due = 41;
  total.noticed_late = 42;
  total.held_back = 43;
  total.never_sent = 44;
  total.unfinished = 45;
  total.lag.record(8us);
  KindResult kind;
  kind.name = "small";
  kind.port = 77;
  kind.share = 0.25;
  kind.rate = 0.5;
  kind.connections = 6;
  kind.total->answered = 12;
  kind.total->valid = 11;
  kind.total->valid_after_end = 3;
  kind.total->errors.add(ErrorKind::late, 9);
  kind.total->service.record(2us);
  kind.total->response.record(3us);
  result.kinds.push_back(std::move(kind));
  campaign.estimates = {{"io_rate_miops", {2, 1, 3}}};
  const auto json = make_json(options, campaign, {}, "");
  const auto& run = json.at("runs").at(0);
  EXPECT_EQ(run.at("connections"), 15);
  EXPECT_EQ(run.at("max_concurrent_messages"), 16);
  EXPECT_EQ(run.at("started_at_unix_s"), 1'700'000'000.25);
  EXPECT_EQ(run.at("warmup_seconds"), 4.0);
  EXPECT_EQ(run.at("in_flight").at("mean"), 1.5);
  EXPECT_NEAR(run.at("in_flight").at("by_littles_law"), 0.00055, 0.00001);
  EXPECT_EQ(run.at("client_busy"), 0.125);
  EXPECT_EQ(run.at("io_rate_miops"), 1.5e-6);
  EXPECT_EQ(run.at("connect_time_us").at("max"), 70.0);
  EXPECT_EQ(run.at("schedule_lag_us").at("count"), 1);
  EXPECT_EQ(run.at("datagrams"), (nlohmann::ordered_json{{"sent", 4},
                                                         {"answered", 3},
                                                         {"lost", 31},
                                                         {"duplicates", 32},
                                                         {"late", 33},
                                                         {"wrong", 1},
                                                         {"sent_again", 34}}));
  EXPECT_EQ(run.at("requests"), (nlohmann::ordered_json{{"due", 41},
                                                        {"noticed_late", 42},
                                                        {"held_back", 43},
                                                        {"never_sent", 44},
                                                        {"unfinished", 45}}));
  ASSERT_EQ(run.at("kinds").size(), 1U);
  const auto& small = run.at("kinds").at(0);
  EXPECT_EQ(small.at("name"), "small");
  EXPECT_EQ(small.at("server_ip_port"), 77);
  EXPECT_EQ(small.at("share"), 0.25);
  EXPECT_EQ(small.at("connections"), 6);
  EXPECT_EQ(small.at("offered_per_second"), 0.5);
  EXPECT_EQ(small.at("valid_per_second"), 4.0);
  EXPECT_EQ(small.at("operation_count"), 12);
  EXPECT_EQ(small.at("valid_responses"), 11);
  EXPECT_EQ(small.at("errors"), (nlohmann::ordered_json{{"late", 9}}));
  EXPECT_EQ(small.at("service_time_us").at("max"), 2.0);
  EXPECT_EQ(small.at("response_time_us").at("max"), 3.0);
  const auto& repeats = json.at("repeats").at("io_rate_miops");
  EXPECT_EQ(repeats.at("median"), 2.0);
  EXPECT_EQ(repeats.at("low"), 1.0);
  EXPECT_EQ(repeats.at("high"), 3.0);
}

}  // namespace
}  // namespace offload::client
