#include "core/log.hpp"

#include <spdlog/details/os.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cstdlib>
#include <iterator>
#include <mutex>
#include <string_view>

#include "core/log_queue.hpp"

namespace offload::core {
namespace {

constexpr const char* kPattern = "%Y-%m-%d %H:%M:%S.%e %^%l%$ %n: %v";
/// Some thousands of lines.
constexpr std::size_t kQueueBytes = 256U << 10;
/// How long the end of the program waits for the lines that are not written yet.
constexpr Duration kFlushTime = std::chrono::seconds(1);

/// LogLevel has spdlog's values, without its header.
spdlog::level::level_enum native(LogLevel level) noexcept {
  static_assert(static_cast<int>(LogLevel::debug) == SPDLOG_LEVEL_DEBUG);
  static_assert(static_cast<int>(LogLevel::critical) == SPDLOG_LEVEL_CRITICAL);
  return static_cast<spdlog::level::level_enum>(level);
}

std::string drop_notice(const std::string& program, std::uint64_t dropped) {
  const std::string text = fmt::format("{} log lines were dropped", dropped);
  spdlog::memory_buf_t line;
  spdlog::pattern_formatter(kPattern).format(
      spdlog::details::log_msg(program, spdlog::level::warn, text), line);
  return fmt::to_string(line);
}

/// Standard error's queue, made at the first call. It is never destroyed: other threads may log
/// until the process has ended.
LogQueue& queue_of(const std::string& program) {
  static auto* const queue = [&] {
    auto* const made = new LogQueue(STDERR_FILENO, kQueueBytes, [program](std::uint64_t dropped) {
      return drop_notice(program, dropped);
    });
    (void)std::atexit([] { flush_log(); });
    return made;
  }();
  return *queue;
}

/// Puts lines into the queue, coloured if they go to a terminal. (spdlog's own asynchronous logger
/// waits in its destructor until everything is written.)
class QueueSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit QueueSink(LogQueue& queue) : queue_(&queue) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    const std::string_view text(line.data(), line.size());
    if (!coloured_) return queue_->append(text);
    const std::size_t from = message.color_range_start;
    const std::size_t to = message.color_range_end;
    queue_->append(fmt::format("{}{}{}\033[m{}", text.substr(0, from), colour(message.level),
                               text.substr(from, to - from), text.substr(to)));
  }
  void flush_() override {}

  static const char* colour(spdlog::level::level_enum level) {
    if (level >= spdlog::level::err) return "\033[31m\033[1m";
    if (level == spdlog::level::warn) return "\033[33m\033[1m";
    return level == spdlog::level::info ? "\033[32m" : "\033[36m";
  }

  LogQueue* const queue_;
  const bool coloured_ =
      spdlog::details::os::in_terminal(stderr) && spdlog::details::os::is_color_terminal();
};

}  // namespace

const std::vector<std::string>& log_levels() {
  static const std::vector<std::string> levels{"trace", "debug", "info", "warning", "error", "off"};
  return levels;
}

void start_log(const std::string& program, const std::string& level) {
  LogQueue& queue = queue_of(program);
  auto logger = std::make_shared<spdlog::logger>(program, std::make_shared<QueueSink>(queue));
  logger->set_pattern(kPattern);
  logger->set_level(spdlog::level::from_str(level));
  spdlog::set_default_logger(std::move(logger));
}

void set_log_level(const std::string& level) {
  spdlog::default_logger_raw()->set_level(spdlog::level::from_str(level));
}

void flush_log() noexcept {
  try {
    (void)queue_of({}).flush(kFlushTime);
  } catch (...) {  // there is no queue, and none could be made
    return;
  }
}

void print_error(const std::string& program, std::string_view text) noexcept {
  try {
    queue_of(program).append(fmt::format("{}: {}\n", program, text));
  } catch (...) {
    return;
  }
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
