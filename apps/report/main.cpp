#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "apps/report/compare/comparison_report.hpp"
#include "apps/report/compare/side.hpp"
#include "apps/report/histograms.hpp"
#include "apps/report/merge/merge.hpp"
#include "apps/report/options.hpp"
#include "apps/report/page/page.hpp"
#include "cli/output_file.hpp"
#include "core/error.hpp"
#include "core/exit_status.hpp"
#include "core/log.hpp"
#include "results/read_result.hpp"
#include "results/write_result.hpp"

namespace offload::report {
namespace {

/// The beginning of a result, apart from blanks, and that of a log.
constexpr std::string_view kResultMarker = R"({"program": "offload-client")";
constexpr std::string_view kLogMarker = "#[Histogram log format version";

std::vector<Result> read_all(const std::vector<std::string>& files) {
  std::vector<Result> results;
  for (const std::string& file : files) results.push_back(results::read_result(file));
  return results;
}

// Each sub-command, from its files to its exit status. They throw Error of one line.

int run(const MergeOptions& options) {
  const Merged merged = merge(read_all(options.results));
  for (const std::string& warning : merged.warnings) {
    core::print_error("offload-report", "warning: " + warning);
  }
  cli::OutputFile(options.output, "--output", kResultMarker)
      .write(results::result_text(merged.result));
  if (!options.histogram_log.empty()) {
    cli::OutputFile(options.histogram_log, "--hlog", kLogMarker)
        .write(histogram_log(merged.result));
  }
  return 0;
}

int run(const HtmlOptions& options) {
  std::vector<Result> all;
  std::vector<ShownAnswer> answers;
  for (const std::string& path : options.results) {
    results::ResultFile file = results::read_result_file(path);
    std::ranges::move(file.results, std::back_inserter(all));
    if (!file.verdict.empty()) answers.push_back({file.verdict, file.sentence});
  }
  cli::OutputFile(options.output, "--output", kPageMarker).write(make_page(all, answers));
  return 0;
}

/// A file that cannot be read is no reason to blame NEW.
int run(const CompareOptions& options) {
  std::optional<Side> base;
  std::optional<Side> candidate;
  try {
    base = read_side(options.base);
    candidate = read_side(options.candidate);
  } catch (const core::Error& error) {
    core::print_error("offload-report", error.what());
    return kCannotTell;
  }
  const auto [text, status] = report_comparison(options, *base, *candidate);
  fmt::print("{}", text);
  return status;
}

}  // namespace
}  // namespace offload::report

int main(int argc, char** argv) {
  using namespace offload;
  return core::exit_status_of("offload-report", [&] {
    const auto parsed = report::parse_options(argc, argv);
    if (const auto* leave = std::get_if<cli::Leave>(&parsed)) return cli::leave(*leave);
    return std::visit([](const auto& options) { return report::run(options); },
                      std::get<report::Options>(parsed));
  });
}
