#include "telemetry/trace.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "telemetry/process_metrics.hpp"

namespace offload::telemetry {

Trace::Trace(const std::string& program) {
  add_name("process_name", 0, program);
}

void Trace::begin_thread(std::string name) {
  thread_ = std::move(name);
  rows_.clear();
}

void Trace::add_span(const char* name, std::uint64_t begin, std::uint64_t end,
                     std::uint64_t bytes) {
  auto row = std::find_if(rows_.begin(), rows_.end(),
                          [begin](const Row& each) { return each.end <= begin; });
  if (row == rows_.end()) {
    row = rows_.insert(rows_.end(), {++last_row_, 0});
    add_name("thread_name", row->number,
             rows_.size() == 1 ? thread_ : fmt::format("{}, beside {}", thread_, rows_.size() - 1));
  }
  row->end = end;
  row_ = row->number;
  add_part(name, begin, end, bytes);
}

void Trace::add_part(const char* name, std::uint64_t begin, std::uint64_t end,
                     std::uint64_t bytes) {
  constexpr std::uint64_t kMicrosecond = 1000;  // the format's unit
  const std::uint64_t length = end - begin;
  fmt::format_to(std::back_inserter(events_),
                 R"(,
{{"name":"{}","cat":"request","ph":"X","ts":{}.{:03},"dur":{}.{:03},"pid":{},"tid":{},"args":{{"bytes":{}}}}})",
                 name, begin / kMicrosecond, begin % kMicrosecond, length / kMicrosecond,
                 length % kMicrosecond, process_id(), row_, bytes);
}

void Trace::add_name(const char* what, int row, const std::string& name) {
  const nlohmann::json event{
      {"name", what}, {"ph", "M"}, {"pid", process_id()}, {"tid", row}, {"args", {{"name", name}}}};
  events_ += events_.empty() ? "" : ",\n";
  events_ += event.dump();
}

std::string Trace::text() const {
  return "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n" + events_ + "]}\n";
}

}  // namespace offload::telemetry
