#include "telemetry/event_log.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace offload::telemetry {
namespace {

TEST(EventLog, HasTheLastOnesTheOldestFirst) {
  EventLog log;
  EXPECT_TRUE(log.to_json().empty());
  for (std::size_t i = 0; i < EventLog::kMost + 2; ++i) log.add(std::to_string(i));
  const auto list = log.to_json();
  ASSERT_EQ(list.size(), EventLog::kMost);
  EXPECT_EQ(list.front()["text"], "2");
  EXPECT_EQ(list.back()["text"], std::to_string(EventLog::kMost + 1));
  EXPECT_LE(list.front()["time"].get<double>(), list.back()["time"].get<double>());
  EXPECT_GT(list.front()["time"].get<double>(), 1.7e9);
}

}  // namespace
}  // namespace offload::telemetry
