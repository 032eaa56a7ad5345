#include "telemetry/trace.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace offload::telemetry {
namespace {

using Names = std::vector<std::string>;

class TraceTest : public testing::Test {
 protected:
  [[nodiscard]] nlohmann::json events() const {
    return nlohmann::json::parse(trace_.text())["traceEvents"];
  }
  /// The names of threads, which are those of rows, in their order.
  [[nodiscard]] Names rows() const {
    Names names;
    for (const auto& event : events()) {
      if (event["name"] != "thread_name") continue;
      EXPECT_EQ(event["ph"], "M");
      names.push_back(event["args"]["name"]);
      EXPECT_EQ(event["tid"], names.size());
    }
    return names;
  }
  /// Name and row of each span.
  [[nodiscard]] std::vector<std::pair<std::string, int>> spans() const {
    std::vector<std::pair<std::string, int>> all;
    for (const auto& event : events()) {
      if (event["ph"] == "X") all.emplace_back(event["name"], event["tid"]);
    }
    return all;
  }

  Trace trace_{"a \"program\""};
};

TEST_F(TraceTest, IsOfAProcessAndHasNoRowsAtFirst) {
  ASSERT_EQ(events().size(), 1U);
  EXPECT_EQ(events()[0]["name"], "process_name");
  EXPECT_EQ(events()[0]["tid"], 0);
  EXPECT_EQ(events()[0]["args"]["name"], "a \"program\"");
  trace_.begin_thread("one without spans");
  EXPECT_EQ(events().size(), 1U);
}

TEST_F(TraceTest, TimesAreMicroseconds) {
  trace_.begin_thread("thread");
  trace_.add_span("request", 1'234'567'001'500, 1'234'567'004'042, 64);
  const auto span = events().back();
  EXPECT_EQ(span["ts"], 1'234'567'001.5);
  EXPECT_EQ(span["dur"], 2.542);
  EXPECT_EQ(span["args"]["bytes"], 64);
  EXPECT_EQ(span["pid"], events()[0]["pid"]);
}

TEST_F(TraceTest, SpansOneAfterTheOtherShareARow) {
  trace_.begin_thread("thread");
  trace_.add_span("a", 10, 20, 0);
  trace_.add_part("part of a", 10, 15, 0);
  trace_.add_span("b", 20, 30, 0);
  EXPECT_EQ(rows(), Names{"thread"});
  EXPECT_EQ(spans().size(), 3U);
}

TEST_F(TraceTest, SpansThatOverlapHaveRowsOfTheirOwn) {
  trace_.begin_thread("thread");
  trace_.add_span("a", 10, 20, 0);
  trace_.add_span("b", 15, 30, 0);
  trace_.add_part("part of b", 15, 16, 0);
  trace_.add_span("c", 5, 40, 0);
  trace_.add_span("d", 25, 45, 0);  // beside b and c, after a
  trace_.begin_thread("other");
  trace_.add_span("e", 12, 18, 0);
  EXPECT_EQ(rows(), (Names{"thread", "thread, beside 1", "thread, beside 2", "other"}));
  const std::vector<std::pair<std::string, int>> expected{{"a", 1}, {"b", 2}, {"part of b", 2},
                                                          {"c", 3}, {"d", 1}, {"e", 4}};
  EXPECT_EQ(spans(), expected);
}

}  // namespace
}  // namespace offload::telemetry
