#pragma once

#include <cstdint>
#include <string>

#include "apps/client/load/request_log.hpp"
#include "cli/output_file.hpp"
#include "core/clock.hpp"

namespace offload::client {

/// The file of --log-requests: a line for each request of all runs, as CSV:
///   run,connection,bytes,intended_ns,sent_ns,done_ns,outcome
/// Times count from the first run's start, on the client's monotonic clock. The outcome is "ok" or
/// the error's name. Requests of the warm-up are in it. The main thread's.
class RequestLogFile {
 public:
  /// Empty: none. Throws Error.
  explicit RequestLogFile(std::string path);

  /// Returns the log for load threads' records; null if none are wanted.
  [[nodiscard]] RequestLog* log() noexcept { return file_.wanted() ? &log_ : nullptr; }

  /// A run begins: what comes belongs to it.
  void begin_run(core::TimePoint now) {
    if (runs_++ == 0) start_ = now;
  }
  /// Writes what is there. Throws Error.
  void write_pending();
  /// After the last run. Throws Error, also if there was no room for all records.
  void commit();

 private:
  void write(const RequestLog::Chunk& chunk);

  cli::OutputFile file_;
  RequestLog log_;
  core::TimePoint start_{};
  std::uint64_t runs_ = 0;
  std::string text_;
};

}  // namespace offload::client
