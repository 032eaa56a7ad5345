#include "core/log.hpp"

#include <unistd.h>

#include <atomic>
#include <cstdarg>
#include <ctime>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "doca/guard.hpp"
#include "doca/include/doca_log.h"

struct doca_log_backend {
  int fd = -1;
  std::FILE* file = nullptr;  ///< null: `fd`
  bool is_sdk = false;        ///< for lines of the library
  std::uint32_t least_severe = DOCA_LOG_LEVEL_TRACE;
  std::uint32_t most_severe = DOCA_LOG_LEVEL_CRIT;
};

namespace offload::doca {
namespace {

/// All backends and sources. Never destroyed: threads may log until the process has ended.
struct LogState {
  std::mutex mutex;
  std::deque<doca_log_backend> backends;  ///< whose elements stay where they are
  std::vector<std::string> sources;
  bool has_standard = false;
  // relaxed: they order nothing else
  std::atomic<std::uint32_t> lower_limit{DOCA_LOG_LEVEL_INFO};
  std::atomic<std::uint32_t> sdk_limit{DOCA_LOG_LEVEL_INFO};  ///< of new backends of the library
};

LogState& log_state() {
  static auto* const only = new LogState;
  return *only;
}

bool is_level(std::uint32_t level) noexcept {
  return level >= DOCA_LOG_LEVEL_DISABLE && level <= DOCA_LOG_LEVEL_TRACE && level % 10 == 0;
}

const char* short_name(std::uint32_t level) noexcept {
  switch (level) {
    case DOCA_LOG_LEVEL_CRIT: return "CRT";
    case DOCA_LOG_LEVEL_ERROR: return "ERR";
    case DOCA_LOG_LEVEL_WARNING: return "WRN";
    case DOCA_LOG_LEVEL_INFO: return "INF";
    case DOCA_LOG_LEVEL_DEBUG: return "DBG";
    default: return "TRC";
  }
}

std::string time_of_day() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  std::tm local{};
  ::localtime_r(&now.tv_sec, &local);
  return fmt::format("{:02}:{:02}:{:02}:{:06}", local.tm_hour, local.tm_min, local.tm_sec,
                     now.tv_nsec / 1000);
}

void write_line(const doca_log_backend& backend, const std::string& line) noexcept {
  if (backend.file != nullptr) {
    std::fwrite(line.data(), 1, line.size(), backend.file);
    std::fflush(backend.file);
  } else {
    [[maybe_unused]] const auto written = ::write(backend.fd, line.data(), line.size());
  }
}

bool accepts(const doca_log_backend& backend, bool is_sdk, std::uint32_t level) noexcept {
  return backend.is_sdk == is_sdk && level >= backend.most_severe && level <= backend.least_severe;
}

/// Writes a line to every backend that accepts it.
void write_everywhere(bool is_sdk, std::uint32_t level, std::string_view place,
                      std::string_view text) {
  LogState& log = log_state();
  const std::scoped_lock lock(log.mutex);
  std::string line;
  for (const doca_log_backend& backend : log.backends) {
    if (!accepts(backend, is_sdk, level)) continue;
    if (line.empty()) {
      line = fmt::format("[{}][{}][DOCA][{}]{} {}\n", time_of_day(), ::getpid(), short_name(level),
                         place, text);
    }
    write_line(backend, line);
  }
}

doca_error_t add(const char* call, const doca_log_backend& backend, doca_log_backend** added) {
  return guarded(call, [&] {
    const std::scoped_lock lock(log_state().mutex);
    *added = &log_state().backends.emplace_back(backend);
    if (backend.is_sdk) (*added)->least_severe = doca_log_level_get_global_sdk_limit();
  });
}

doca_error_t add_file(const char* call, std::FILE* file, bool is_sdk, doca_log_backend** added) {
  if (any_null(file, added)) return DOCA_ERROR_INVALID_VALUE;
  doca_log_backend backend;
  backend.file = file;
  backend.is_sdk = is_sdk;
  return add(call, backend, added);
}

doca_error_t add_fd(const char* call, int fd, bool is_sdk, doca_log_backend** added) {
  if (fd < 0 || added == nullptr) return DOCA_ERROR_INVALID_VALUE;
  doca_log_backend backend;
  backend.fd = fd;
  backend.is_sdk = is_sdk;
  return add(call, backend, added);
}

doca_error_t set_limit(doca_log_backend* backend, bool is_sdk, std::uint32_t level,
                       std::uint32_t doca_log_backend::*limit) noexcept {
  if (backend == nullptr || !is_level(level)) return DOCA_ERROR_INVALID_VALUE;
  if (backend->is_sdk != is_sdk) return DOCA_ERROR_NOT_PERMITTED;
  const std::scoped_lock lock(log_state().mutex);
  backend->*limit = level;
  return DOCA_SUCCESS;
}

doca_error_t set_global(std::atomic<std::uint32_t>& limit, std::uint32_t level) noexcept {
  if (!is_level(level)) return DOCA_ERROR_INVALID_VALUE;
  limit.store(level, std::memory_order_relaxed);
  return DOCA_SUCCESS;
}

std::uint32_t level_of(core::LogLevel level) noexcept {
  switch (level) {
    case core::LogLevel::debug: return DOCA_LOG_LEVEL_DEBUG;
    case core::LogLevel::info: return DOCA_LOG_LEVEL_INFO;
    case core::LogLevel::warning: return DOCA_LOG_LEVEL_WARNING;
    case core::LogLevel::error: return DOCA_LOG_LEVEL_ERROR;
    case core::LogLevel::critical: return DOCA_LOG_LEVEL_CRIT;
  }
  return DOCA_LOG_LEVEL_TRACE;
}

std::string formatted(const char* format, std::va_list arguments) {
  std::va_list again;
  va_copy(again, arguments);
  const int length = std::vsnprintf(nullptr, 0, format, again);
  va_end(again);
  if (length < 0) return format;
  std::string text(static_cast<std::size_t>(length) + 1, '\0');
  std::vsnprintf(text.data(), text.size(), format, arguments);
  text.pop_back();
  return text;
}

}  // namespace
}  // namespace offload::doca

namespace offload::core {

/// The log of the library's objects, instead of that of core/log.cpp: their lines are SDK lines.
void write_log(LogLevel level, std::string_view component, fmt::string_view format,
               fmt::format_args arguments) noexcept {
  try {
    doca::write_everywhere(true, doca::level_of(level), fmt::format("[{}]", component),
                           fmt::vformat(format, arguments));
  } catch (...) {  // NOLINT(bugprone-empty-catch): without memory, a line is lost
  }
}

/// Each line is written at once.
void flush_log() noexcept {}

}  // namespace offload::core

using namespace offload::doca;  // NOLINT(google-build-using-namespace): the calls have no namespace

doca_error_t doca_log_backend_create_standard() {
  {
    const std::scoped_lock lock(log_state().mutex);
    if (log_state().has_standard) return DOCA_ERROR_ALREADY_EXIST;
    log_state().has_standard = true;
  }
  doca_log_backend output;
  output.file = stdout;
  output.most_severe = DOCA_LOG_LEVEL_INFO;
  doca_log_backend errors;
  errors.file = stderr;
  errors.least_severe = DOCA_LOG_LEVEL_WARNING;
  doca_log_backend* added = nullptr;
  const doca_error_t result = add(__func__, output, &added);
  return result == DOCA_SUCCESS ? add(__func__, errors, &added) : result;
}

doca_error_t doca_log_backend_create_with_file(FILE* file, doca_log_backend** backend) {
  return add_file(__func__, file, false, backend);
}

doca_error_t doca_log_backend_create_with_file_sdk(FILE* file, doca_log_backend** backend) {
  return add_file(__func__, file, true, backend);
}

doca_error_t doca_log_backend_create_with_fd(int fd, doca_log_backend** backend) {
  return add_fd(__func__, fd, false, backend);
}

doca_error_t doca_log_backend_create_with_fd_sdk(int fd, doca_log_backend** backend) {
  return add_fd(__func__, fd, true, backend);
}

doca_error_t doca_log_backend_set_level_lower_limit(doca_log_backend* backend, uint32_t level) {
  return set_limit(backend, false, level, &doca_log_backend::least_severe);
}

doca_error_t doca_log_backend_set_level_upper_limit(doca_log_backend* backend, uint32_t level) {
  return set_limit(backend, false, level, &doca_log_backend::most_severe);
}

doca_error_t doca_log_backend_set_sdk_level(doca_log_backend* backend, uint32_t level) {
  return set_limit(backend, true, level, &doca_log_backend::least_severe);
}

doca_error_t doca_log_level_set_global_lower_limit(uint32_t level) {
  return set_global(log_state().lower_limit, level);
}

uint32_t doca_log_level_get_global_lower_limit() {
  return log_state().lower_limit.load(std::memory_order_relaxed);
}

doca_error_t doca_log_level_set_global_sdk_limit(uint32_t level) {
  const doca_error_t result = set_global(log_state().sdk_limit, level);
  if (result != DOCA_SUCCESS) return result;
  const std::scoped_lock lock(log_state().mutex);
  for (doca_log_backend& backend : log_state().backends) {
    if (backend.is_sdk) backend.least_severe = level;
  }
  return DOCA_SUCCESS;
}

uint32_t doca_log_level_get_global_sdk_limit() {
  return log_state().sdk_limit.load(std::memory_order_relaxed);
}

doca_error_t doca_log_register_source(const char* name, int* source) {
  if (any_null(name, source)) return DOCA_ERROR_INVALID_VALUE;
  return guarded(__func__, [&] {
    const std::scoped_lock lock(log_state().mutex);
    *source = static_cast<int>(log_state().sources.size());
    log_state().sources.emplace_back(name);
  });
}

void doca_log(uint32_t level, int source, int line, const char* function, const char* format, ...) {
  if (format == nullptr || level > doca_log_level_get_global_lower_limit()) return;
  std::va_list arguments;
  va_start(arguments, format);
  try {
    std::string name = "unknown";
    {
      const std::scoped_lock lock(log_state().mutex);
      const auto index = static_cast<std::size_t>(source);
      if (source >= 0 && index < log_state().sources.size()) name = log_state().sources[index];
    }
    write_everywhere(false, level,
                     fmt::format("[{}:{}][{}]", name, line, function != nullptr ? function : ""),
                     formatted(format, arguments));
  } catch (...) {  // NOLINT(bugprone-empty-catch): without memory, a line is lost
  }
  va_end(arguments);
}
