#include "apps/client/report/text_files.hpp"

#include <fmt/core.h>

#include <iterator>

#include "metrics/hdr_log.hpp"

namespace offload::client {
namespace {

std::string figures_of(const LatencyFigures& figures) {
  if (figures.count == 0) return ",,";
  return fmt::format("{:.3f},{:.3f},{:.3f}", figures.p50_us, figures.p99_us,
                     core::to_micros(figures.max));
}

}  // namespace

std::string make_csv(const Campaign& campaign) {
  std::string text(kCsvMarker);
  text +=
      ",operations,valid,errors,in_flight,service_p50_us,service_p99_us,"
      "service_max_us,response_p50_us,response_p99_us,response_max_us\n";
  for (std::size_t run = 0; run < campaign.runs.size(); ++run) {
    for (const Second& second : campaign.runs[run].seconds) {
      fmt::format_to(std::back_inserter(text), "{},{:.3f},{:.3f},{},{},{},{:.3f},{},{}\n", run,
                     second.start_s, second.length_s, second.answered, second.valid, second.errors,
                     second.in_flight, figures_of(second.service), figures_of(second.response));
    }
  }
  return text;
}

std::string make_histogram_log(const Campaign& campaign) {
  const double start = campaign.runs.empty() ? 0 : campaign.runs.front().started_at_unix_s;
  std::string text = metrics::hdr_log_header(start);
  for (const RunResult& run : campaign.runs) {
    for (const Second& second : run.seconds) {
      const double begin = run.started_at_unix_s - start + second.start_s;
      const auto add = [&](const char* tag, const LatencyFigures& figures) {
        text += metrics::hdr_log_line(tag, begin, second.length_s, figures.max, figures.histogram);
      };
      add("service_time", second.service);
      if (second.response.count != 0) add("response_time", second.response);
    }
  }
  return text;
}

}  // namespace offload::client
