#include "results/write_result.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/results/sample.hpp"

namespace offload::results {
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

}  // namespace
}  // namespace offload::results
