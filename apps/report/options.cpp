#include "apps/report/options.hpp"

#include "cli/options.hpp"

namespace offload::report {
namespace {

constexpr const char* kDescription =
    "Processes the results that offload-client writes with --output: merges the results of\n"
    "several processes, shows results as a page, or compares a new result with an older one.";

constexpr const char* kFooter =
    "\n"
    "Exit status: 0 success; 1 an error; 2 an invalid command line. For compare see\n"
    "offload-report compare --help.\n\n"
    "Examples:\n"
    "  offload-report merge host1.json host2.json -o both.json\n"
    "  offload-report html both.json -o both.html\n"
    "  offload-report compare base.json new.json --fail 'p99>1.2' --fail 'rate<0.9'";

constexpr const char* kMergeFooter =
    "\nThe processes must have been started together (offload-client --start-at), with the same\n"
    "kind of load and the same number of runs; the n-th run of each is merged with the n-th run\n"
    "of the others. Counters are added, rates are for the time from the first begin to the last\n"
    "end, and percentiles are recomputed from the histograms. The clocks of several hosts must\n"
    "agree.\n"
    "Exit status: 0 success; 1 an error; 2 an invalid command line.";

constexpr const char* kHtmlFooter =
    "\n"
    "The page is self-contained and needs no network. Exit status: 0 success; 1 an error; 2 an "
    "invalid command line.";

constexpr const char* kCompareFooter =
    "\nBASE and NEW: a result with several runs (offload-client --repeat), several results as\n"
    "a,b,c, or a folder of results (*.json). The n-th run of one, by time, is compared with the\n"
    "n-th run of the other; alternate the runs, because the speed of a machine drifts.\n\n"
    "EXPRESSION: FIGURE > NUMBER or FIGURE < NUMBER. FIGURE is rate, mean, p50, p90, p95, p99,\n"
    "p99.9, p99.99 or max: NUMBER bounds the ratio of NEW to BASE; or errors: NUMBER bounds the\n"
    "errors of NEW. Latencies are response times if both results have them, else service times.\n\n"
    "Exit status: 0 no expression is true; 1 NEW has errors, or an expression is true; 2 an\n"
    "invalid command line; 3 no verdict: a file is invalid, the loads differ in an option, too "
    "few\n"
    "repeats, or too much noise.";

void add_results(cli::CommandLine& line, std::vector<std::string>& results) {
  cli::add_each(line, "RESULT", results, cli::read_name, "a file",
                "Results of offload-client; html takes answers of offload-bench, too")
      .required();
}

void add_output(cli::CommandLine& line, std::string& output, const std::string& description) {
  cli::add_text(line, "-o,--output FILE", output, description).required();
}

cli::CommandLine& add_merge(cli::CommandLine& line, MergeOptions& options) {
  auto& command = line.add_command(
      "merge", "Merge the results of several processes or hosts into one", kMergeFooter);
  add_results(command, options.results);
  add_output(command, options.output,
             "Write the merged result here; overwrites a file only if it is a result");
  cli::add_text(command, "--hlog FILE", options.histogram_log,
                "Also write the intervals to this file, as an HdrHistogram log. Default: no file");
  return command;
}

cli::CommandLine& add_html(cli::CommandLine& line, HtmlOptions& options) {
  auto& command = line.add_command("html", "Show results as a page for a browser", kHtmlFooter);
  add_results(command, options.results);
  add_output(command, options.output,
             "Write the page here; overwrites a file only if it is such a page");
  return command;
}

cli::CommandLine& add_compare(cli::CommandLine& line, CompareOptions& options) {
  auto& command =
      line.add_command("compare", "Compare a new result with an older one, for CI", kCompareFooter);
  cli::add_text(command, "BASE", options.base, "Compare with this result").required();
  cli::add_text(command, "NEW", options.candidate, "Check that this is not worse").required();
  cli::add_each(command, "--fail EXPRESSION", options.thresholds, parse_threshold,
                "FIGURE > NUMBER or FIGURE < NUMBER, such as 'p99>1.2' or 'rate<0.9'",
                "Fail if this expression is true. May be repeated. Default: rate<0.9 and p50>1.1")
      .one_each();
  return command;
}

}  // namespace

std::variant<Options, cli::Leave> parse_options(int argc, const char* const* argv) {
  MergeOptions merge;
  HtmlOptions html;
  CompareOptions compare;
  cli::CommandLine line("offload-report", kDescription, kFooter);
  const auto& merge_command = add_merge(line, merge);
  const auto& html_command = add_html(line, html);
  add_compare(line, compare);
  if (auto leave = line.parse(argc, argv)) return *leave;
  if (merge_command.said()) return Options(merge);
  if (html_command.said()) return Options(html);
  return Options(compare);
}

}  // namespace offload::report
