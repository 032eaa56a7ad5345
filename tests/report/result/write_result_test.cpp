#include "apps/report/result/write_result.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "metrics/hdr_log.hpp"
#include "tests/report/sample.hpp"

namespace offload::report {
namespace {

TEST(WriteResult, IsOfFormatOne) {
  const auto written = nlohmann::json::parse(result_text(sample_result({sample_run()})));
  EXPECT_EQ(written.at("program"), "offload-client");
  EXPECT_EQ(written.at("format"), 1);
  EXPECT_EQ(written.at("options").at("service"), "reverse");
  EXPECT_TRUE(written.at("options").at("iteration_count").is_null());
  EXPECT_TRUE(written.at("repeats").is_null());
  const auto& run = written.at("runs").at(0);
  EXPECT_TRUE(run.at("offered_per_second").is_null());
  EXPECT_TRUE(run.at("response_time_us").is_null());
  EXPECT_EQ(run.at("service_time_us").at("max"), 400);
  EXPECT_EQ(run.at("errors"), nlohmann::json::object());
}

TEST(WriteResult, ReplacesWhatIsNoUtf8) {
  Result result = sample_result({});
  result.faults = {"\xff"};
  EXPECT_EQ(nlohmann::json::parse(result_text(result)).at("faults").at(0), "\xef\xbf\xbd");
}

TEST(HistogramLog, HasTheIntervalsOfAllRunsByTag) {
  std::istringstream log(histogram_log(sample_result({open_loop_run(), open_loop_run(10)})));
  metrics::HdrLogReader reader(log, "the log");
  metrics::HdrLogInterval interval;
  std::vector<double> starts;
  std::vector<std::string> tags;
  std::uint64_t latencies = 0;
  while (reader.next(interval)) {
    starts.push_back(interval.start_s - 1'763'879'556);
    tags.push_back(interval.tag);
    latencies += interval.histogram.count();
  }
  EXPECT_EQ(starts, (std::vector<double>{0, 0, 1, 1, 10, 10, 11, 11}));
  EXPECT_EQ(tags.at(0), "service_time");
  EXPECT_EQ(tags.at(1), "response_time");
  EXPECT_EQ(latencies, 16U);
}

}  // namespace
}  // namespace offload::report
