#include "core/log.hpp"

#include <spdlog/details/os.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <iterator>
#include <mutex>
#include <string_view>
#include <utility>

#include "core/error.hpp"
#include "core/log_levels.hpp"
#include "core/log_queue.hpp"
#include "core/process/out_of_memory.hpp"

namespace offload::core {
namespace {

constexpr const char* kPattern = "%Y-%m-%d %H:%M:%S.%e %^%l%$ %n: %v";
/// Some thousands of lines.
constexpr std::size_t kQueueBytes = 256U << 10;
/// The time for which the end of the program waits for lines that are not written yet.
constexpr Duration kFlushTime = std::chrono::seconds(1);

/// LogLevel has spdlog's values, without its header.
spdlog::level::level_enum native(LogLevel level) noexcept {
  static_assert(static_cast<int>(LogLevel::debug) == SPDLOG_LEVEL_DEBUG);
  static_assert(static_cast<int>(LogLevel::critical) == SPDLOG_LEVEL_CRITICAL);
  return static_cast<spdlog::level::level_enum>(level);
}

std::unique_ptr<spdlog::formatter> make_formatter(LogFormat format);

/// The format of the log that was started last. relaxed, as it orders nothing.
std::atomic<LogFormat> current_format{LogFormat::text};

/// Returns a line in the format of the log, for text that does not use a logger.
std::string line_of(const std::string& program, spdlog::level::level_enum level,
                    std::string_view text) {
  spdlog::memory_buf_t line;
  make_formatter(current_format.load(std::memory_order_relaxed))
      ->format(spdlog::details::log_msg(program, level, {text.data(), text.size()}), line);
  return fmt::to_string(line);
}

std::string drop_notice(const std::string& program, std::uint64_t dropped) {
  return line_of(program, spdlog::level::warn, fmt::format("{} log lines were dropped", dropped));
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

/// The levels that the log reports. Most lines that are not reported cost one load.
class Reported {
 public:
  static Reported& instance() {
    static auto* const reported = new Reported;  // never destroyed, as the queue
    return *reported;
  }

  void set(LogLevels levels) {
    const std::scoped_lock lock(mutex_);
    lowest_.store(levels.lowest(), std::memory_order_relaxed);  // pairs with is_reported()
    levels_ = std::move(levels);
  }

  bool is_reported(LogLevel level, std::string_view component) {
    // relaxed: who sees an older value reports as before the change, which orders nothing else.
    if (static_cast<int>(level) < lowest_.load(std::memory_order_relaxed)) return false;
    const std::scoped_lock lock(mutex_);
    return static_cast<int>(level) >= levels_.of(component);
  }

 private:
  std::mutex mutex_;
  LogLevels levels_;  ///< under mutex_
  std::atomic<int> lowest_{static_cast<int>(LogLevel::info)};
};

/// A JSON object a line, for those who collect logs of many programs.
class JsonFormatter final : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& line) override {
    const auto since = message.time.time_since_epoch();
    const auto milliseconds =
        std::chrono::duration_cast<std::chrono::milliseconds>(since).count() % 1000;
    const std::tm utc = spdlog::details::os::gmtime(spdlog::log_clock::to_time_t(message.time));
    fmt::format_to(std::back_inserter(line),
                   R"({{"time":"{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z","level":"{}",)"
                   R"("program":"{}","component":"{}","thread":{},"message":")",
                   utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min,
                   utc.tm_sec, milliseconds, to_text(spdlog::level::to_string_view(message.level)),
                   to_text(message.logger_name),
                   message.source.funcname == nullptr ? "" : message.source.funcname,
                   message.thread_id);
    append_escaped(to_text(message.payload), line);
    constexpr std::string_view kEnd = "\"}\n";
    line.append(kEnd.data(), kEnd.data() + kEnd.size());
  }
  [[nodiscard]] std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<JsonFormatter>();
  }

 private:
  static std::string_view to_text(spdlog::string_view_t text) { return {text.data(), text.size()}; }

  /// Text of peers is escaped before it is logged (escaped()), so all of a line is UTF-8.
  static void append_escaped(std::string_view text, spdlog::memory_buf_t& line) {
    for (const char c : text) {
      if (c == '"' || c == '\\') {
        line.push_back('\\');
        line.push_back(c);
      } else if (static_cast<unsigned char>(c) < 0x20) {
        fmt::format_to(std::back_inserter(line), "\\u{:04x}", static_cast<unsigned char>(c));
      } else {
        line.push_back(c);
      }
    }
  }
};

std::unique_ptr<spdlog::formatter> make_formatter(LogFormat format) {
  if (format == LogFormat::json) return std::make_unique<JsonFormatter>();
  return std::make_unique<spdlog::pattern_formatter>(kPattern);
}

}  // namespace

void start_log(const std::string& program, const std::string& levels, LogFormat format) {
  LogQueue& queue = queue_of(program);
  auto logger = std::make_shared<spdlog::logger>(program, std::make_shared<QueueSink>(queue));
  current_format.store(format, std::memory_order_relaxed);
  logger->set_formatter(make_formatter(format));
  logger->set_level(spdlog::level::trace);  // what is reported is Reported's to say
  set_log_level(levels);
  spdlog::set_default_logger(std::move(logger));
}

void set_log_level(const std::string& levels) {
  auto parsed = LogLevels::parse(levels);
  if (!parsed) return;
  Reported::instance().set(*std::move(parsed));
}

void flush_log() noexcept {
  try {
    (void)queue_of({}).flush(kFlushTime);
  } catch (...) {  // there is no queue, and none could be made
    return;
  }
}

void print_error(const std::string& program, std::string_view text) noexcept {
  std::string line;
  try {
    const bool plain = current_format.load(std::memory_order_relaxed) == LogFormat::text;
    line =
        plain ? fmt::format("{}: {}\n", program, text) : line_of(program, spdlog::level::err, text);
    queue_of(program).append(line);
  } catch (...) {  // no memory for it, or no thread can be started to write it
    if (line.empty()) return print_without_memory(program, text);
    (void)!::write(STDERR_FILENO, line.data(), line.size());
  }
}

void write_log(LogLevel level, std::string_view component, fmt::string_view format,
               fmt::format_args arguments) noexcept {
  try {
    if (!Reported::instance().is_reported(level, component)) return;
    fmt::memory_buffer line;
    fmt::vformat_to(std::back_inserter(line), format, arguments);
    // spdlog carries the name of a function beside a line: here it is the component.
    const std::string name(component.starts_with("lib/") ? component.substr(4) : component);
    spdlog::default_logger_raw()->log(spdlog::source_loc{"", 0, name.c_str()}, native(level),
                                      spdlog::string_view_t(line.data(), line.size()));
  } catch (...) {
    return;
  }
}

}  // namespace offload::core
