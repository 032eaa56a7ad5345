#include "apps/client/report/text_files.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <sstream>

#include "metrics/hdr_log.hpp"
#include "tests/client/report/sample_campaign.hpp"

namespace offload::client {
namespace {

TEST(Csv, ALineASecond) {
  EXPECT_EQ(make_csv(sample_campaign(true)),
            "run,start_s,length_s,operations,valid,errors,in_flight,service_p50_us,service_p99_us,"
            "service_max_us,response_p50_us,response_p99_us,response_max_us\n"
            "0,0.500,1.000,3,2,1,1.500,100.096,,1000.000,600.064,,1500.000\n")
      << "two latencies have no p99";
  EXPECT_NE(make_csv(sample_campaign(false)).find("100.096,,1000.000,,,\n"), std::string::npos);
  EXPECT_EQ(make_csv(sample_campaign(false)).rfind(kCsvMarker, 0), 0U);
}

TEST(Csv, EachLineHasTheNumberOfItsRun) {
  Campaign campaign = sample_campaign(false);
  campaign.runs.push_back(sample_run(false));
  const std::string csv = make_csv(campaign);
  const std::size_t first = csv.find("\n0,0.500,1.000,3,");
  EXPECT_NE(first, std::string::npos);
  EXPECT_NE(csv.find("\n1,0.500,1.000,3,", first), std::string::npos) << csv;
}

/// Latencies below the resolution of the clock.
Campaign campaign_of_zeros() {
  Campaign campaign = sample_campaign(true);
  const auto histogram = std::make_unique<metrics::LatencyHistogram>();
  for (int i = 0; i < 100; ++i) histogram->record(core::Duration::zero());
  results::RunInterval& second = campaign.runs.front().seconds.front();
  second.service_time_us = results::IntervalLatency::of(*histogram);
  second.response_time_us = second.service_time_us;
  return campaign;
}

TEST(Csv, LatenciesOfZeroAreNotMissing) {
  EXPECT_NE(make_csv(campaign_of_zeros()).find(",0.000,0.000,0.000,0.000,0.000,0.000\n"),
            std::string::npos);
}

TEST(HistogramLog, LatenciesOfZeroAreNotMissing) {
  EXPECT_NE(make_histogram_log(campaign_of_zeros()).find("response_time"), std::string::npos);
}

TEST(HistogramLog, ASecondWithoutAnswersHasNoLine) {
  Campaign campaign = sample_campaign(true);
  campaign.runs.front().seconds.front().service_time_us = {};
  campaign.runs.front().seconds.front().response_time_us.emplace();
  EXPECT_EQ(make_histogram_log(campaign).find("Tag="), std::string::npos);
  EXPECT_EQ(make_csv(campaign).find("0.000,0.000"), std::string::npos);
}

// It is as exact as the histogram.
TEST(HistogramLog, HasTheLargestLatencyInMilliseconds) {
  const std::string log = make_histogram_log(sample_campaign(true));
  EXPECT_NE(log.find("Tag=service_time,0.500,1.000,1.004,"), std::string::npos) << log;
  EXPECT_NE(log.find("Tag=response_time,0.500,1.000,1.507,"), std::string::npos) << log;
}

TEST(HistogramLog, IsReadBack) {
  std::istringstream text(make_histogram_log(sample_campaign(true)));
  EXPECT_EQ(text.str().rfind(kHistogramLogMarker, 0), 0U);
  metrics::HdrLogReader reader(text, "log");
  metrics::HdrLogInterval interval;
  ASSERT_TRUE(reader.next(interval));
  EXPECT_EQ(interval.tag, "service_time");
  EXPECT_NEAR(interval.start_s, 1'700'000'000.75, 1e-3);
  EXPECT_DOUBLE_EQ(interval.length_s, 1);
  EXPECT_EQ(interval.histogram.count(), 2U);
  ASSERT_TRUE(reader.next(interval));
  EXPECT_EQ(interval.tag, "response_time");
  const auto mean = interval.histogram.mean();
  ASSERT_TRUE(reader.next(interval));
  EXPECT_EQ(interval.tag, "");
  EXPECT_TRUE(interval.histogram.mean() == mean);
  EXPECT_FALSE(reader.next(interval));
}

TEST(HistogramLog, StartsCountFromTheFirstRun) {
  Campaign campaign = sample_campaign(false);
  campaign.runs.push_back(sample_run(false));
  campaign.runs[1].started_at_unix_s += 60;
  std::istringstream text(make_histogram_log(campaign));
  metrics::HdrLogReader reader(text, "log");
  metrics::HdrLogInterval interval;
  for (const double start :
       {1'700'000'000.75, 1'700'000'000.75, 1'700'000'060.75, 1'700'000'060.75}) {
    ASSERT_TRUE(reader.next(interval));
    EXPECT_NEAR(interval.start_s, start, 1e-3);
  }
  EXPECT_FALSE(reader.next(interval));
}

TEST(HistogramLog, HasTheServiceTimeWithoutTagIfThereIsNoOther) {
  std::istringstream text(make_histogram_log(sample_campaign(false)));
  metrics::HdrLogReader reader(text, "log");
  metrics::HdrLogInterval tagged;
  metrics::HdrLogInterval without;
  ASSERT_TRUE(reader.next(tagged));
  EXPECT_EQ(tagged.tag, "service_time");
  ASSERT_TRUE(reader.next(without));
  EXPECT_EQ(without.tag, "");
  EXPECT_EQ(without.histogram.count(), 2U);
  EXPECT_TRUE(without.histogram.mean() == tagged.histogram.mean());
  EXPECT_FALSE(reader.next(without));
}

}  // namespace
}  // namespace offload::client
