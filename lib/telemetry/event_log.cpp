#include "telemetry/event_log.hpp"

#include <nlohmann/json.hpp>
#include <utility>

namespace offload::telemetry {

void EventLog::add(std::string text) {
  const auto now = std::chrono::system_clock::now();
  const std::lock_guard lock(mutex_);
  if (events_.size() == kMost) events_.pop_front();
  events_.push_back({now, std::move(text)});
}

nlohmann::json EventLog::to_json() const {
  auto list = nlohmann::json::array();
  const std::lock_guard lock(mutex_);
  for (const Event& event : events_) {
    const std::chrono::duration<double> since_epoch = event.time.time_since_epoch();
    list.push_back({{"time", since_epoch.count()}, {"text", event.text}});
  }
  return list;
}

}  // namespace offload::telemetry
