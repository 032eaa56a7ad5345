#include "core/log.hpp"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <iterator>

namespace offload::core {
namespace {

/// LogLevel has spdlog's values, without its header.
spdlog::level::level_enum native(LogLevel level) noexcept {
  static_assert(static_cast<int>(LogLevel::debug) == SPDLOG_LEVEL_DEBUG);
  static_assert(static_cast<int>(LogLevel::critical) == SPDLOG_LEVEL_CRITICAL);
  return static_cast<spdlog::level::level_enum>(level);
}

}  // namespace

const std::vector<std::string>& log_levels() {
  static const std::vector<std::string> levels{"trace", "debug", "info", "warning", "error", "off"};
  return levels;
}

void start_log(const std::string& program, const std::string& level) {
  auto logger = std::make_shared<spdlog::logger>(
      program, std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
  logger->set_pattern("%Y-%m-%d %H:%M:%S.%e %^%l%$ %n: %v");
  logger->set_level(spdlog::level::from_str(level));
  logger->flush_on(spdlog::level::trace);
  spdlog::set_default_logger(std::move(logger));
}

void write_log(LogLevel level, fmt::string_view format, fmt::format_args arguments) noexcept {
  spdlog::logger& logger = *spdlog::default_logger_raw();
  if (!logger.should_log(native(level))) return;
  try {
    fmt::memory_buffer line;
    fmt::vformat_to(std::back_inserter(line), format, arguments);
    logger.log(native(level), spdlog::string_view_t(line.data(), line.size()));
  } catch (...) {
    return;
  }
}

}  // namespace offload::core
