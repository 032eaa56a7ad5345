#include "apps/report/commands.hpp"

#include <fmt/core.h>

#include <cstdio>

#include "apps/report/compare/comparison_report.hpp"
#include "apps/report/compare/side.hpp"
#include "apps/report/merge/merge.hpp"
#include "apps/report/page/page.hpp"
#include "apps/report/result/read_result.hpp"
#include "apps/report/result/write_result.hpp"
#include "cli/output_file.hpp"
#include "core/log.hpp"

namespace offload::report {
namespace {

std::vector<Result> read_all(const std::vector<std::string>& files) {
  std::vector<Result> results;
  for (const std::string& file : files) results.push_back(read_result(file));
  return results;
}

}  // namespace

int run(const MergeOptions& options) {
  const Merged merged = merge(read_all(options.results));
  for (const std::string& warning : merged.warnings) {
    core::print_error("offload-report", "warning: " + warning);
  }
  cli::OutputFile(options.output, "--output", kResultMarker).write(result_text(merged.result));
  if (!options.histogram_log.empty()) {
    cli::OutputFile(options.histogram_log, "--hlog", kLogMarker)
        .write(histogram_log(merged.result));
  }
  return 0;
}

int run(const HtmlOptions& options) {
  cli::OutputFile(options.output, "--output", kPageMarker)
      .write(make_page(read_all(options.results)));
  return 0;
}

int run(const CompareOptions& options) {
  const auto [text, status] =
      report_comparison(options, read_side(options.base), read_side(options.candidate));
  fmt::print("{}", text);
  return status;
}

}  // namespace offload::report
