#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <iterator>
#include <string>
#include <utility>

#include "apps/client/load/request_log.hpp"
#include "cli/output_file.hpp"
#include "core/clock.hpp"
#include "core/error.hpp"

namespace offload::client {

inline constexpr const char* kLegend = "run,connection,bytes,intended_ns,sent_ns,done_ns,outcome";

/// The file of --log-requests: a line for each request of all runs, as CSV:
///   run,connection,bytes,intended_ns,sent_ns,done_ns,outcome
/// Times count from the first run's start, on the client's monotonic clock. The outcome is "ok" or
/// the error's name. Requests of the warm-up are in it. The main thread's.
class RequestLogFile {
 public:
  /// Empty: none. Throws Error.
  explicit RequestLogFile(std::string path) : file_(std::move(path), "--log-requests", kLegend) {
    file_.append(fmt::format("{}\n", kLegend));
  }

  /// Returns the log for load threads' records; null if none are wanted.
  [[nodiscard]] RequestLog* log() noexcept { return file_.wanted() ? &log_ : nullptr; }

  /// A run begins: what comes belongs to it.
  void begin_run(core::TimePoint now) {
    if (runs_++ == 0) start_ = now;
  }
  /// Writes what is there. Throws Error.
  void write_pending() {
    for (auto& chunk : log_.take()) {
      write(chunk);
      log_.give_back(std::move(chunk));
    }
  }
  /// After the last run. Throws Error, also if there was no room for all records.
  void commit() {
    write_pending();
    file_.commit();
    if (log_.lost() == 0) return;
    throw core::Error(
        core::ErrorCode::full,
        fmt::format("--log-requests: {} requests are missing: they arrived too fast to be written",
                    log_.lost()));
  }

 private:
  void write(const RequestLog::Chunk& chunk) {
    text_.clear();
    const auto since_start = [&](core::TimePoint time) { return (time - start_).count(); };
    for (const RequestRecord& record : chunk) {
      fmt::format_to(std::back_inserter(text_), "{},{},{},{},{},{},{}\n", runs_ - 1,
                     record.connection, record.bytes, since_start(record.intended),
                     since_start(record.sent), since_start(record.done),
                     record.error ? name_of(*record.error) : "ok");
    }
    file_.append(text_);
  }

  cli::OutputFile file_;
  RequestLog log_;
  core::TimePoint start_{};
  std::uint64_t runs_ = 0;
  std::string text_;
};

}  // namespace offload::client
