#include "telemetry/open_metrics.hpp"

#include <gtest/gtest.h>

#include "telemetry/exposition.hpp"

namespace offload::telemetry {
namespace {

constexpr Metric kDuration{"x_seconds", "Time \"in\" C:\\\nx."};

/// Returns the lines of a page that begin with `begin`.
std::string lines_of(const std::string& page, const std::string& begin) {
  std::string found;
  for (std::size_t at = 0; at < page.size();) {
    const std::size_t end = page.find('\n', at) + 1;
    if (page.compare(at, begin.size(), begin) == 0) found += page.substr(at, end - at);
    at = end;
  }
  return found;
}

TEST(OpenMetrics, AFamilyOfCountersIsNamedWithoutTheSuffix) {
  Exposition page(false);
  page.counter({"x_bytes_total", "Bytes."}, {{"a", "1"}, {"b", "2"}}, 3);
  page.gauge({"y", "Things."}, {}, 0.5);
  EXPECT_EQ(page.open_metrics(),
            "# TYPE x_bytes counter\n# UNIT x_bytes bytes\n# HELP x_bytes Bytes.\n"
            "x_bytes_total{a=\"1\",b=\"2\"} 3\n"
            "# TYPE y gauge\n# HELP y Things.\ny 0.5\n# EOF\n");
}

TEST(OpenMetrics, OnlyACounterLosesItsSuffix) {
  Exposition page(false);
  page.counter({"things", "Things."}, {}, 2);
  page.gauge({"y_total", "Others."}, {}, 1);
  EXPECT_EQ(page.open_metrics(),
            "# TYPE things counter\n# HELP things Things.\nthings_total 2\n"
            "# TYPE y_total gauge\n# HELP y_total Others.\ny_total 1\n# EOF\n");
}

TEST(OpenMetrics, HelpAndLabelsAreEscaped) {
  Exposition page(false);
  page.gauge(kDuration, {{"name", "a\"b\nc\\"}}, 1);
  EXPECT_EQ(page.open_metrics(),
            "# TYPE x_seconds gauge\n# UNIT x_seconds seconds\n"
            "# HELP x_seconds Time \\\"in\\\" C:\\\\\\nx.\n"
            "x_seconds{name=\"a\\\"b\\nc\\\\\"} 1\n# EOF\n");
}

TEST(OpenMetrics, SamplesAreThoseOfTheClassicFormat) {
  DurationHistogram histogram;
  histogram.record(std::chrono::microseconds(30));
  histogram.record(core::seconds(20));
  Exposition page(false);
  page.histogram(kDuration, {{"stage", "send"}}, histogram);
  page.gauge({"y_bytes", "Bytes."}, {}, 123'456'789'012);
  for (const char* const begin : {"x_seconds_bucket", "x_seconds_count", "x_seconds_sum", "y"}) {
    EXPECT_EQ(lines_of(page.open_metrics(), begin), lines_of(page.text(), begin));
    EXPECT_NE(lines_of(page.text(), begin), "");
  }
}

TEST(OpenMetrics, ABucketHasItsLatestExemplar) {
  DurationHistogram histogram;
  Exposition page(false);
  page.histogram(kDuration, {{"service", "a"}}, histogram);
  page.histogram(kDuration, {{"service", "b"}}, histogram);
  const auto add = [&](std::size_t bucket, const char* id, double value, double time) {
    page.exemplar(kDuration, {{"service", "b"}}, bucket, {{{"id", id}}, value, time});
  };
  add(9, "first", 0.0007, 100);
  add(9, "last", 0.0006, 1764259200.1234);
  add(9, "between", 0.0008, 200);
  add(22, "longest", 12.5, 300);
  const std::string open = page.open_metrics();
  EXPECT_EQ(lines_of(open, "x_seconds_bucket{service=\"b\",le=\"0.001\"}"),
            "x_seconds_bucket{service=\"b\",le=\"0.001\"} 0 # {id=\"last\"} 0.0006 "
            "1764259200.123\n");
  EXPECT_EQ(lines_of(open, "x_seconds_bucket{service=\"b\",le=\"+Inf\"}"),
            "x_seconds_bucket{service=\"b\",le=\"+Inf\"} 0 # {id=\"longest\"} 12.5 300.000\n");
  EXPECT_EQ(std::count(open.begin(), open.end(), '#'), 4 + 2);  // metadata, # EOF, and these
  EXPECT_EQ(page.text().find("id="), std::string::npos);
}

TEST(AcceptHeader, PrometheusGetsOpenMetrics) {
  for (const char* const accept :
       {"application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;"
        "q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",  // Prometheus 2.42
        "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;"
        "version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",  // 2.49
        "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
        "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;"
        "escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",  // 3.0
        "application/openmetrics-text; version=1.0.0", "application/openmetrics-text",
        "application/openmetrics-text;q=0.1", "application/openmetrics-text;version=\"\"",
        "Application/OpenMetrics-Text ; Version=\"1.0.0\" ; Q=1.0, text/plain",
        "*/*, text/*;q=0.5, application/openmetrics-text;q=0.6"}) {
    EXPECT_TRUE(prefers_open_metrics(accept)) << accept;
  }
}

TEST(AcceptHeader, OthersGetTheClassicFormat) {
  for (const char* const accept : {"",
                                   "*/*",
                                   "text/plain",
                                   "application/*",
                                   "application/json",
                                   "text/html,*/*;q=0.8",
                                   "application/openmetrics-text;version=0.0.1",
                                   "application/openmetrics-text;version=2.0.0",
                                   "application/openmetrics-text;q=0",
                                   "application/openmetrics-text;q=0,*/*;q=0",
                                   "application/openmetrics-text;q=0.3,text/plain;q=0.5",
                                   "application/openmetrics-text;q=0.3,*/*",
                                   "application/openmetrics-text;q=0.3,text/*;q=1",
                                   "application/openmetrics-text;q=nan",
                                   "application/openmetrics-text;q=2",
                                   "application/openmetrics-text;q=0.5x",
                                   "application/openmetrics-text;q=",
                                   "application/openmetrics-textual",
                                   ",;,=;q=1;,,\";\"",
                                   ";version=1.0.0"}) {
    EXPECT_FALSE(prefers_open_metrics(accept)) << accept;
  }
}

}  // namespace
}  // namespace offload::telemetry
