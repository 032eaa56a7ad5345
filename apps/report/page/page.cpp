#include "apps/report/page/page.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <iterator>

#include "apps/report/numbers.hpp"
#include "apps/report/page/chart.hpp"
#include "apps/report/page/html_text.hpp"
#include "apps/report/page/plots.hpp"
#include "apps/report/page/run_list.hpp"
#include "apps/report/page/status_banner.hpp"
#include "apps/report/page/tables.hpp"
#include "results/json_field.hpp"

namespace offload::report {

/// page.html, which CMake embeds: the page with {{policy}}, {{title}} and {{body}} to be filled in.
extern const char* const kPageTemplate;

namespace {

std::string file_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
}

/// "A result.json", or "result.json" if it is the only one.
std::string name_of(const std::vector<Result>& results, std::size_t i) {
  const std::string letter = letter_of(i, results.size());
  return letter + (letter.empty() ? "" : " ") + html_text(file_name(results[i].file));
}

std::string header(const std::vector<Result>& results) {
  std::string names;
  for (std::size_t i = 0; i < results.size(); ++i) {
    names += (i == 0 ? "" : ", ") + name_of(results, i);
  }
  return fmt::format("<header><h1>Load test</h1><p class=\"meta\">{}</p></header>\n", names);
}

/// "2,000 to 10,000", or "2,000" if all runs have the same.
template <class Get>
std::string range_of_runs(const Result& result, Get get) {
  double low = get(result.runs.front());
  double high = low;
  for (const Run& run : result.runs) {
    low = std::min(low, get(run));
    high = std::max(high, get(run));
  }
  return low == high ? grouped(low, 0) : grouped(low, 0) + " to " + grouped(high, 0);
}

/// Returns the verdicts, with the runs of each: "closed loop: ... (run 1, 2)".
std::string verdicts(const std::vector<ShownRun>& runs,
                     const std::function<std::string(const Run&)>& words_of) {
  std::vector<std::pair<std::string, std::vector<const ShownRun*>>> texts;
  for (const ShownRun& shown : runs) {
    const std::string words = words_of(*shown.run);
    const auto found = std::ranges::find(texts, words, [](const auto& each) { return each.first; });
    if (found != texts.end()) found->second.push_back(&shown);
    if (found == texts.end()) texts.push_back({words, {&shown}});
  }
  std::string html;
  for (const auto& [text, shown] : texts) {
    std::string names;
    for (const ShownRun* each : shown) names += (names.empty() ? "" : ", ") + each->name;
    const bool all = shown.size() == runs.size();
    html += fmt::format("<p>{}{}</p>", html_text(text),
                        all ? "" : fmt::format(" <span class=\"note\">(run {})</span>", names));
  }
  return html;
}

/// The sentences of a few runs; of many, which say rates of their own each, the codes first.
std::string verdict_entry(const std::vector<ShownRun>& runs) {
  constexpr std::size_t kFew = 3;
  std::string sentences = verdicts(runs, verdict_text_of);
  if (runs.size() <= kFew) return sentences;
  const std::string codes = verdicts(runs, [](const Run& run) {
    std::string words = verdict_code_of(run);
    std::ranges::replace(words, '_', ' ');
    return words;
  });
  return codes + "<details><summary>each run</summary>" + sentences + "</details>";
}

void add_entry(const char* name, const std::string& html, std::string& list) {
  list += fmt::format("<dt>{}</dt><dd>{}</dd>", name, html);
}

std::string load_html(const Result& result) {
  const Run& first = result.runs.front();
  const std::string in_flight = range_of_runs(
      result, [](const Run& run) { return static_cast<double>(run.max_concurrent_messages); });
  const std::string connections =
      fmt::format("{} {}, {} in flight on each", counted(first.connections),
                  first.connections == 1 ? "connection" : "connections", in_flight);
  if (!first.offered_per_second) return "closed loop, " + connections;
  const std::string rates =
      range_of_runs(result, [](const Run& run) { return run.offered_per_second.value_or(0); });
  return fmt::format("open loop, {} requests /s, {} arrivals, {}", rates,
                     html_text(first.arrivals.value_or("unknown")), connections);
}

std::string parameters_of(const Result& result) {
  std::string html = "<dl class=\"parameters\">";
  for (const auto& [name, value] : result.options) {
    html += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>", html_text(name),
                        html_text(results::plain_text(value)));
  }
  return html + "</dl>";
}

std::string setup_card(const std::vector<Result>& results, std::size_t i,
                       const std::vector<ShownRun>& runs) {
  const Result& result = results[i];
  std::string list;
  add_entry("Host", html_text(result.machine.host), list);
  add_entry("System", html_text(result.machine.system), list);
  add_entry("Processors",
            fmt::format("{} × {}", counted(result.machine.processors),
                        html_text(result.machine.processor)),
            list);
  add_entry(
      "Client",
      fmt::format("offload-client {} ({})", html_text(result.version), html_text(result.revision)),
      list);
  if (!result.runs.empty()) {
    const Run& first = result.runs.front();
    add_entry("Started", utc_text(first.started_at_unix_s), list);
    add_entry("Load", load_html(result), list);
    add_entry(
        "Duration",
        fmt::format("{} × {} s, {}", result.runs.size(), grouped(first.duration_seconds, 1),
                    first.warmup_seconds == 0
                        ? "without warm-up"
                        : fmt::format("after {} s of warm-up", grouped(first.warmup_seconds, 1))),
        list);
  }
  std::vector<ShownRun> own;
  std::ranges::copy_if(runs, std::back_inserter(own),
                       [&](const ShownRun& shown) { return shown.result == &result; });
  if (!own.empty()) add_entry("Verdict", verdict_entry(own), list);
  std::string command;
  for (const std::string& word : result.command_line) {
    command += (command.empty() ? "" : " ") + html_command(word);
  }
  const char* const open = results.size() <= 2 ? " open" : "";
  return fmt::format(
      "<div class=\"card{}\"><h3>{}</h3><dl>{}</dl><pre>{}</pre>"
      "<details{}><summary>Parameters</summary>{}</details></div>\n",
      results.size() == 1 ? " wide" : "", name_of(results, i), list, command, open,
      parameters_of(result));
}

std::string setup_section(const std::vector<Result>& results, const std::vector<ShownRun>& runs) {
  std::string html = "<section><h2>Setup</h2><div class=\"cards\">\n";
  for (std::size_t i = 0; i < results.size(); ++i) html += setup_card(results, i, runs);
  return html + "</div></section>\n";
}

std::string numbers_section(const std::vector<Result>& results, const std::vector<ShownRun>& runs) {
  return "<section><h2>Numbers</h2><div class=\"tables\">\n" + throughput_table(runs) +
         kinds_table(runs) + latency_tables(runs) + repeats_table(results) + "</div></section>\n";
}

std::string charts_section(const std::vector<ShownRun>& runs) {
  std::string html = "<section><h2>Charts</h2>\n";
  if (runs.size() > kMostRunsDrawn) {
    html += fmt::format("<p class=\"note\">The first {} of {} runs.</p>\n", kMostRunsDrawn,
                        runs.size());
  }
  html += "<div class=\"charts\">\n";
  for (const Chart& chart : make_charts(runs)) html += draw(chart);
  return html + "</div></section>\n";
}

/// An answer is green only if it is good for NEW.
std::string answer_banner(const ShownAnswer& answer) {
  const auto is = [&](std::initializer_list<std::string_view> verdicts) {
    return std::ranges::find(verdicts, answer.verdict) != verdicts.end();
  };
  const char* const kind = is({"answered", "equal", "faster"}) ? "good"
                           : is({"slower", "failed"})          ? "bad"
                                                               : "warn";
  return banner(kind, html_text(answer.sentence), {});
}

std::string body_of(const std::vector<Result>& results, const std::vector<ShownAnswer>& answers) {
  const std::vector<ShownRun> runs = list_runs(results);
  std::string html = header(results);
  for (const ShownAnswer& answer : answers) html += answer_banner(answer);
  for (std::size_t i = 0; i < results.size(); ++i) {
    html += status_banner(name_of(results, i), results[i]);
  }
  html += setup_section(results, runs);
  if (!runs.empty()) html += charts_section(runs) + numbers_section(results, runs);
  return html + "<footer>offload-report " OFFLOAD_VERSION
                "; a percentile is off by at most half a bucket of its histogram, 0.4 %</footer>\n";
}

/// Returns the text between the first `begin` and the next `end`.
std::string_view between(std::string_view text, std::string_view begin, std::string_view end) {
  const std::size_t from = text.find(begin) + begin.size();
  return text.substr(from, text.find(end, from) - from);
}

std::string policy_of(std::string_view page) {
  return "default-src 'none'; base-uri 'none'; form-action 'none'; style-src " +
         policy_hash(between(page, "<style>", "</style>")) + "; script-src " +
         policy_hash(between(page, "<script>", "</script>"));
}

}  // namespace

std::string make_page(const std::vector<Result>& results, const std::vector<ShownAnswer>& answers) {
  const std::string_view page = kPageTemplate;
  std::string title = "Load test";
  for (std::size_t i = 0; i < results.size() && i < 4; ++i) title += " " + name_of(results, i);
  const std::string policy = policy_of(page);
  const std::string body = body_of(results, answers);
  std::string text;
  for (std::size_t at = 0;;) {
    const std::size_t mark = page.find("{{", at);
    text += page.substr(at, mark - at);
    if (mark == std::string_view::npos) return text;
    const std::string_view name = between(page.substr(mark), "{{", "}}");
    text += name == "policy" ? policy : name == "title" ? title : body;
    at = mark + name.size() + 4;
  }
}

}  // namespace offload::report
