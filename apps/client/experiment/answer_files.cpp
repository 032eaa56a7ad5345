#include "apps/client/experiment/answer_files.hpp"

#include <fmt/core.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "revision.hpp"

namespace offload::client {
namespace {

using Json = nlohmann::ordered_json;

/// JSON has no infinite numbers.
Json number_or_null(double number) {
  return std::isfinite(number) ? Json(number) : Json();
}

const char* question_of(const Experiment& experiment) {
  return kQuestionNames[static_cast<std::size_t>(experiment.question)];
}

Json json_of(const SliceCounts& counts) {
  return {{"slices", counts.slices},
          {"client_late", counts.client_late},
          {"server_late", counts.server_late},
          {"client_busy", counts.client_busy}};
}

Json json_of(const Compared& compared, const Experiment& experiment) {
  Json figures = Json::object();
  for (const auto& row : compared.rows) {
    figures[kSliceFigureNames[static_cast<std::size_t>(row.figure)]] = {
        {"decides", row.decides},
        {"pairs", row.pairs},
        {"base_us", row.base},
        {"new_us", row.compared},
        {"ratio", number_or_null(row.ratio.middle)},
        {"low", number_or_null(row.ratio.low)},
        {"high", number_or_null(row.ratio.high)}};
  }
  Json pairs = Json::array();
  for (const SlicePair& pair : compared.pairs) {
    pairs.push_back(
        {{"new_first", pair.new_first}, {"base_us", pair.base.us}, {"new_us", pair.compared.us}});
  }
  return {{"seed", experiment.seed},
          {"slice_seconds", core::to_seconds(experiment.slice)},
          {"settle_seconds", core::to_seconds(experiment.settle)},
          {"tolerance", experiment.rules.tolerance},
          {"confidence", 1 - PairedComparison::kWrong},
          {"base", json_of(compared.base)},
          {"new", json_of(compared.compared_counts)},
          {"figures", figures},
          {"pairs", pairs}};
}

/// Returns a text as the value of an attribute in XML; what XML cannot have is a question mark.
std::string attribute(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&': escaped += "&amp;"; break;
      case '<': escaped += "&lt;"; break;
      case '>': escaped += "&gt;"; break;
      case '"': escaped += "&quot;"; break;
      default: {
        const auto code = static_cast<unsigned char>(c);
        escaped += code < 0x20 || code >= 0x7f ? '?' : c;
      }
    }
  }
  return escaped;
}

}  // namespace

Json json_of(const Experiment& experiment, const ExperimentOutcome& outcome,
             const std::vector<std::string>& command_line) {
  Json loads = Json::array();
  for (const LoadAnswer& load : outcome.loads) {
    Json results = Json::array();
    for (const auto& [target, text] : load.results) {
      results.push_back(
          {{"target", target}, {"result", Json::parse(text, nullptr, /*allow_exceptions=*/false)}});
    }
    Json clocks = Json::array();
    for (const HostClock& clock : load.clocks) {
      clocks.push_back({{"host", clock.host},
                        {"clock_offset_seconds", clock.clock.offset},
                        {"uncertainty_seconds", clock.clock.uncertainty}});
    }
    loads.push_back({{"name", load.load},
                     {"verdict", name_of(load.answer.verdict)},
                     {"sentence", load.answer.sentence},
                     {"seconds", load.seconds},
                     {"compare", load.compared ? json_of(*load.compared, experiment) : Json()},
                     {"hosts", clocks},
                     {"results", results}});
  }
  return {{"program", "offload-bench"},
          {"format", 1},
          {"version", OFFLOAD_VERSION},
          {"revision", OFFLOAD_REVISION},
          {"command_line", command_line},
          {"experiment", outcome.file},
          {"question", question_of(experiment)},
          {"verdict", name_of(outcome.answer.verdict)},
          {"sentence", outcome.answer.sentence},
          {"exit_status", status_of(outcome.answer.verdict)},
          {"loads", loads}};
}

std::string junit_of(const Experiment& experiment, const ExperimentOutcome& outcome) {
  std::string cases;
  int failures = 0;
  int errors = 0;
  // An experiment that ended before its first load is a case, too.
  std::vector<LoadAnswer> loads = outcome.loads;
  if (loads.empty()) loads.push_back({"", outcome.answer, outcome.seconds, {}, {}, {}});
  for (const LoadAnswer& load : loads) {
    cases += fmt::format("  <testcase classname=\"offload-bench.{}\" name=\"{}\" time=\"{:.3f}\">",
                         question_of(experiment),
                         attribute(load.load.empty() ? outcome.file : load.load), load.seconds);
    const int status = status_of(load.answer.verdict);
    if (status != 0) {
      const bool is_failure = status == 1;
      ++(is_failure ? failures : errors);
      cases += fmt::format("<{} type=\"{}\" message=\"{}\"/>", is_failure ? "failure" : "error",
                           name_of(load.answer.verdict), attribute(load.answer.sentence));
    }
    cases +=
        fmt::format("<system-out>{}</system-out></testcase>\n", attribute(load.answer.sentence));
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<testsuite name=\"offload-bench\" tests=\"{}\" failures=\"{}\" errors=\"{}\" "
      "time=\"{:.3f}\">\n{}</testsuite>\n",
      loads.size(), failures, errors, outcome.seconds, cases);
}

}  // namespace offload::client
