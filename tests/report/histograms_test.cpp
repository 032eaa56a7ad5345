#include "apps/report/histograms.hpp"

#include <gtest/gtest.h>

#include <sstream>

#include "metrics/hdr_log.hpp"
#include "tests/results/sample.hpp"
#include "tests/support/thrown.hpp"

namespace offload::report {
namespace {

using namespace results;

TEST(HistogramSum, IsTheHistogramOfAllLatencies) {
  HistogramSum sum;
  sum.add(latency_of({100, 300, 5001}));
  sum.add(latency_of({}));
  sum.add(latency_of({7, 200}));
  const Latency all = latency_of({100, 300, 5001, 7, 200});
  const Latency merged = sum.latency();
  EXPECT_EQ(merged.count, 5U);
  for (std::size_t i = 0; i < all.us.size(); ++i) {
    EXPECT_NEAR(merged.us[i], all.us[i], all.us[i] * 0.004) << kStatisticNames[i];
  }
  EXPECT_EQ(merged.at(Statistic::min), 7) << "exact, though the histogram has buckets";
  EXPECT_EQ(merged.at(Statistic::max), 5001);
  EXPECT_EQ(merged.histogram, all.histogram);
}

TEST(HistogramSum, HasTheMeanAndTheEndsOfAllWhateverTheirOrder) {
  HistogramSum sum;
  sum.add(latency_of({7, 200}));
  sum.add(latency_of({100, 300, 5001}));
  EXPECT_EQ(sum.latency().at(Statistic::min), 7);
  EXPECT_EQ(sum.latency().at(Statistic::max), 5001);
  EXPECT_NEAR(sum.latency().at(Statistic::mean), 5608.0 / 5, 5608.0 / 5 * 0.004);
}

TEST(HistogramSum, TakesTheLargestLatencyThatIsGivenBesideTheHistogram) {
  Latency latency = latency_of({100, 300});
  latency.us[static_cast<std::size_t>(Statistic::max)] = 310;  // of another bucket
  HistogramSum sum;
  sum.add(latency);
  EXPECT_EQ(sum.latency().at(Statistic::max), 310);
}

TEST(HistogramSum, OfIntervalsHasTheLargestOfAll) {
  HistogramSum sum;
  sum.add(interval_of(0, 1, {100, 5001}).service_time_us);
  sum.add(interval_of(1, 1, {200, 300}).service_time_us);
  sum.add(interval_of(2, 1, {}).service_time_us);
  const IntervalLatency all = sum.interval();
  EXPECT_EQ(all.count, 4U);
  EXPECT_EQ(all.max, 5001);
  EXPECT_NEAR(all.p50, 200, 1);
  EXPECT_NEAR(all.p99, 5001, 20);
}

TEST(HistogramSum, OfNothingIsEmpty) {
  const Latency none = HistogramSum().latency();
  EXPECT_EQ(none.count, 0U);
  EXPECT_EQ(none.at(Statistic::max), 0);
  EXPECT_EQ(metrics::decode_hdr(none.histogram).count(), 0U);
  EXPECT_EQ(HistogramSum().interval().p50, 0);
}

TEST(HistogramSum, DoesNotOverflow) {
  const auto many = std::make_unique<metrics::LatencyHistogram>();
  many->add(5, metrics::kMaxHdrCount - 1);
  HistogramSum sum;
  sum.add(metrics::encode_hdr(*many));
  sum.add(encoded({1}));
  const auto error = support::thrown_by([&] { sum.add(encoded({1})); });
  EXPECT_EQ(error.code(), core::ErrorCode::bad_message);
}

TEST(HistogramLog, HasTheIntervalsOfAllRunsByTagAndWithout) {
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
  EXPECT_EQ(starts, (std::vector<double>{0, 0, 0, 1, 1, 1, 10, 10, 10, 11, 11, 11}));
  EXPECT_EQ(tags.at(0), "service_time");
  EXPECT_EQ(tags.at(1), "response_time");
  EXPECT_EQ(tags.at(2), "");
  EXPECT_EQ(latencies, 24U);
}

TEST(HistogramLog, HasNoLineOfAnIntervalWithoutLatencies) {
  report::Run run = sample_run();
  run.intervals = {interval_of(0, 1, {}), interval_of(1, 1, {100})};
  const std::string header = metrics::hdr_log_header(run.started_at_unix_s);
  const metrics::LatencyHistogram one = metrics::decode_hdr(encoded({100}));
  EXPECT_EQ(histogram_log(sample_result({run})),
            header + metrics::hdr_log_line("service_time", 1, 1, one) +
                metrics::hdr_log_line("", 1, 1, one));
  EXPECT_EQ(histogram_log(sample_result({})), metrics::hdr_log_header(0));
}

}  // namespace
}  // namespace offload::report
