#pragma once

#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "core/log.hpp"

namespace offload::support {

/// Keeps the log lines. Any thread may log.
class TextSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  [[nodiscard]] std::string text() {
    const std::lock_guard lock(mutex_);
    return text_;
  }
  void clear() {
    const std::lock_guard lock(mutex_);
    text_.clear();
  }

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    text_.append(line.data(), line.size());
  }
  void flush_() override {}

  std::string text_;
};

/// Keeps the log lines of its lifetime, as lines of "level: text". Any thread may log.
class LogCapture {
 public:
  LogCapture() : former_(spdlog::default_logger()) {
    auto logger = std::make_shared<spdlog::logger>("test", sink_);
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

  /// Returns the lines that were logged since the last clear().
  [[nodiscard]] std::string text() const { return sink_->text(); }
  [[nodiscard]] bool has(const std::string& part) const {
    return text().find(part) != std::string::npos;
  }
  void clear() { sink_->clear(); }

 private:
  std::shared_ptr<TextSink> sink_ = std::make_shared<TextSink>();
  std::shared_ptr<spdlog::logger> former_;
};

}  // namespace offload::support
