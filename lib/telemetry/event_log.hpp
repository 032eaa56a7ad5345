#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace offload::telemetry {

/// The last events of a program, for its status page. Any thread.
class EventLog {
 public:
  static constexpr std::size_t kMost = 64;

  /// The oldest one goes where there are kMost.
  void add(std::string text);

  /// An array of {"time": seconds since the epoch, "text": ...}, the oldest first.
  [[nodiscard]] nlohmann::json to_json() const;

 private:
  struct Event {
    std::chrono::system_clock::time_point time;
    std::string text;
  };

  mutable std::mutex mutex_;
  std::deque<Event> events_;  ///< under the mutex
};

}  // namespace offload::telemetry
