#include "apps/report/options.hpp"

#include "cli/options.hpp"

namespace offload::report {
namespace {

constexpr const char* kDescription =
    "Works on the results that offload-client writes with --output: merges those of several\n"
    "processes, shows results as a page, compares a new one with an older one.";

constexpr const char* kFooter =
    "\nExit status: 0 done; 1 an error; 2 a wrong command line. compare has one more:\n"
    "offload-report compare --help.\n\n"
    "Examples:\n"
    "  offload-report merge host1.json host2.json -o both.json\n"
    "  offload-report html both.json -o both.html\n"
    "  offload-report compare base.json new.json --fail 'p99>1.2' --fail 'rate<0.9'";

constexpr const char* kMergeFooter =
    "\nThe results are of processes that were begun together (offload-client --start-at), with "
    "the\n"
    "same kind of load and the same number of runs; the n-th run of each is merged with the n-th "
    "of\n"
    "all others. Counters are added, rates are over the time from the first to the last, and\n"
    "percentiles are computed anew from the histograms. Clocks of several hosts have to agree.\n"
    "Exit status: 0 done; 1 an error; 2 a wrong command line.";

constexpr const char* kHtmlFooter =
    "\nThe page has everything in itself and needs no network.\n"
    "Exit status: 0 done; 1 an error; 2 a wrong command line.";

constexpr const char* kCompareFooter =
    "\nBASE and NEW: a result with several runs (offload-client --repeat), several results as\n"
    "a,b,c or a folder of them (*.json). The n-th run of one is compared with the n-th of the "
    "other\n"
    "by time; begin them alternately, as a machine's speed drifts.\n\n"
    "EXPRESSION: FIGURE > NUMBER or FIGURE < NUMBER. FIGURE is rate, mean, p50, p90, p95, p99,\n"
    "p99.9, p99.99, max, of which NUMBER bounds the ratio of NEW to BASE; or errors, of which it\n"
    "bounds the number in NEW. Latencies are response times where both have them, else service "
    "times.\n\n"
    "Exit status: 0 nothing found; 1 NEW has errors, or a threshold is exceeded, or a file is\n"
    "wrong; 2 a wrong command line; 3 it cannot be told: too few repeats or too much noise.";

void add_results(cli::CommandLine& line, std::vector<std::string>& results) {
  const auto take = [&results](const std::string& text) {
    results.push_back(text);
    return !text.empty();
  };
  cli::add_values(line, "RESULT", take, "a file", "Results of offload-client").required();
}

void add_output(cli::CommandLine& line, std::string& output, const std::string& description) {
  cli::add_text(line, "-o,--output", output, description).type_name("FILE").required();
}

cli::CommandLine& add_merge(cli::CommandLine& line, MergeOptions& options) {
  auto& command = line.add_command(
      "merge", "Make one result of those of several processes or hosts", kMergeFooter);
  add_results(command, options.results);
  add_output(command, options.output,
             "The merged result; a file there that is no result is not overwritten");
  cli::add_text(command, "--hlog", options.histogram_log,
                "Also write the intervals to this file, as a log of HdrHistogram. Default: no file")
      .type_name("FILE");
  return command;
}

cli::CommandLine& add_html(cli::CommandLine& line, HtmlOptions& options) {
  auto& command = line.add_command("html", "Show results as a page for a browser", kHtmlFooter);
  add_results(command, options.results);
  add_output(command, options.output,
             "The page; a file there that is no such page is not overwritten");
  return command;
}

cli::CommandLine& add_compare(cli::CommandLine& line, CompareOptions& options) {
  auto& command =
      line.add_command("compare", "Compare a new result with an older one, for CI", kCompareFooter);
  cli::add_text(command, "BASE", options.base, "What is compared with").required();
  cli::add_text(command, "NEW", options.candidate, "What is to be no worse").required();
  const auto take = [&options](const std::string& text) {
    const auto threshold = parse_threshold(text);
    if (threshold) options.thresholds.push_back(*threshold);
    return threshold.has_value();
  };
  cli::add_values(command, "--fail", take,
                  "FIGURE > NUMBER or FIGURE < NUMBER, such as 'p99>1.2' or 'rate<0.9'",
                  "Fail if this is so. May be said several times")
      .type_name("EXPRESSION")
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
