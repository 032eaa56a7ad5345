#include "core/log.hpp"

#include <spdlog/sinks/stdout_color_sinks.h>

#include <vector>

namespace offload::core {

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

}  // namespace offload::core
