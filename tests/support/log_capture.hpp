#pragma once

#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <sstream>
#include <string>
#include <utility>

#include "core/log.hpp"

namespace offload::support {

/// Takes what is logged while it lives, as lines of "level: text".
class LogCapture {
 public:
  LogCapture() : former_(spdlog::default_logger()) {
    auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(stream_);
    auto logger = std::make_shared<spdlog::logger>("test", std::move(sink));
    logger->set_pattern("%l: %v");
    logger->set_level(spdlog::level::trace);
    spdlog::set_default_logger(std::move(logger));
    core::set_log_level("trace");
  }
  LogCapture(const LogCapture&) = delete;
  LogCapture& operator=(const LogCapture&) = delete;
  ~LogCapture() {
    core::set_log_level("info");
    spdlog::set_default_logger(former_);
  }

  /// What was logged since it was last cleared.
  [[nodiscard]] std::string text() const { return stream_.str(); }
  [[nodiscard]] bool has(const std::string& part) const {
    return text().find(part) != std::string::npos;
  }
  void clear() { stream_.str({}); }

 private:
  std::ostringstream stream_;
  std::shared_ptr<spdlog::logger> former_;
};

}  // namespace offload::support
