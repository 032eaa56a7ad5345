#include "apps/client/report/request_log_file.hpp"

#include <fmt/core.h>

#include <iterator>
#include <utility>

#include "core/error.hpp"

namespace offload::client {

constexpr const char* kLegend = "run,connection,bytes,intended_ns,sent_ns,done_ns,outcome";

RequestLogFile::RequestLogFile(std::string path)
    : file_(std::move(path), "--log-requests", kLegend) {
  file_.append(std::string(kLegend) + "\n");
}

void RequestLogFile::write_pending() {
  for (auto& chunk : log_.take()) {
    write(chunk);
    log_.give_back(std::move(chunk));
  }
}

void RequestLogFile::write(const RequestLog::Chunk& chunk) {
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

void RequestLogFile::commit() {
  write_pending();
  file_.commit();
  if (log_.lost() == 0) return;
  throw core::Error(
      core::ErrorCode::full,
      fmt::format("--log-requests: {} requests are missing: they arrived too fast to be written",
                  log_.lost()));
}

}  // namespace offload::client
