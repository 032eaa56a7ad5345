#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "apps/report/numbers.hpp"
#include "apps/report/page/chart.hpp"
#include "apps/report/page/html_text.hpp"
#include "apps/report/page/run_list.hpp"

namespace offload::report {

struct Column {
  std::string heading;
  std::string figure;
  std::function<std::optional<double>(const Run&)> value;  ///< nothing: a dash
  int decimals = 0;
  bool bad_above_zero = false;
};

/// As many as three significant digits of the smallest number take, so that the points of a column
/// are below each other.
inline int decimals_for(double smallest) {
  return smallest >= 100 ? 1 : smallest >= 10 ? 2 : 3;
}

inline std::string head(const ShownRun& shown) {
  return fmt::format(R"(<th scope="row"><span class="swatch {}"></span>{}</th>)",
                     classes_of(shown.style), shown.name);
}

inline void add_cell(const ShownRun& shown, const Column& column, std::string& html) {
  const auto value = column.value(*shown.run);
  if (!value) {
    html += "<td>–</td>";
    return;
  }
  const bool bad = column.bad_above_zero && *value > 0;
  fmt::format_to(std::back_inserter(html),
                 R"(<td{} data-run="{}" data-figure="{}" data-value="{}">{}</td>)",
                 bad ? R"( class="bad")" : "", shown.name, column.figure, *value,
                 grouped(*value, column.decimals));
}

/// `last`: a heading and a text of each run behind the numbers, both HTML; empty for none.
inline std::string table(const std::string& caption, const std::vector<ShownRun>& runs,
                         const std::vector<Column>& columns, const std::string& last_heading = {},
                         const std::function<std::string(const Run&)>& last = {}) {
  std::string html = fmt::format(
      R"(<div class="scroll"><table><caption>{}</caption><thead><tr><th scope="col">run</th>)",
      caption);
  for (const Column& column : columns) {
    html += fmt::format(R"(<th scope="col">{}</th>)", column.heading);
  }
  if (last) html += fmt::format(R"(<th scope="col">{}</th>)", last_heading);
  html += "</tr></thead>\n<tbody>";
  for (const ShownRun& shown : runs) {
    html += "<tr>" + head(shown);
    for (const Column& column : columns) add_cell(shown, column, html);
    if (last) html += "<td>" + last(*shown.run) + "</td>";
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

inline double as_number(std::uint64_t count) {
  return static_cast<double>(count);
}

using Select = std::function<const Latency*(const Run&)>;

inline std::string latency_table(const std::string& caption, const std::string& member,
                                 const std::vector<ShownRun>& runs, const Select& select) {
  std::vector<Column> columns;
  for (std::size_t i = 0; i < kStatisticNames.size(); ++i) {
    const std::string name = kStatisticNames[i];
    std::string heading = name;
    std::ranges::replace(heading, '_', '.');
    double smallest = 1e9;
    for (const ShownRun& shown : runs) {
      const Latency* const latency = select(*shown.run);
      if (latency != nullptr && latency->us[i] > 0) smallest = std::min(smallest, latency->us[i]);
    }
    const auto value = [=](const Run& run) -> std::optional<double> {
      const Latency* const latency = select(run);
      if (latency == nullptr || !latency->has(static_cast<Statistic>(i))) return std::nullopt;
      return latency->us[i];
    };
    columns.push_back({heading, fmt::format("{}.{}", member, name), value, decimals_for(smallest)});
  }
  return table(caption, runs, columns);
}

inline const Latency* pointer_to(const std::optional<Latency>& latency) {
  return latency ? &*latency : nullptr;
}

inline bool any(const std::vector<ShownRun>& runs, std::optional<Latency> Run::*member) {
  return std::ranges::any_of(
      runs, [=](const ShownRun& shown) { return (shown.run->*member).has_value(); });
}

/// The numbers of all runs as HTML tables: throughput, service time, response time where there is
/// any, connect time and schedule lag. Each cell of a number has the exact one in data-value, under
/// the name that format 1 has for it in data-figure, and its run's name in data-run.
inline std::string throughput_table(const std::vector<ShownRun>& runs) {
  const auto any = [&](std::uint64_t Run::*member) {
    return std::ranges::any_of(runs,
                               [=](const ShownRun& shown) { return shown.run->*member != 0; });
  };
  const bool open = std::ranges::any_of(
      runs, [](const ShownRun& shown) { return shown.run->offered_per_second.has_value(); });
  std::vector<Column> columns = {
      {"offered /s", "offered_per_second", [](const Run& run) { return run.offered_per_second; }},
      {"achieved /s", "rate_per_second", [](const Run& run) { return run.io_rate_miops * 1e6; }},
      {"seconds", "duration_seconds", [](const Run& run) { return run.duration_seconds; }, 2},
      {"responses", "operation_count",
       [](const Run& run) { return as_number(run.operation_count); }},
      {"valid", "valid_responses", [](const Run& run) { return as_number(run.valid_responses); }},
      {"errors", "errors", [](const Run& run) { return as_number(run.error_count()); }, 0, true},
      {"sent GiB/s", "tx_data_rate_gib_s", [](const Run& run) { return run.tx_data_rate_gib_s; },
       3},
      {"in flight", "in_flight.mean", [](const Run& run) { return run.in_flight_mean; }, 1},
  };
  if (!open) columns.erase(columns.begin());
  if (any(&Run::unanswered_requests)) {
    columns.push_back({"unanswered", "unanswered_requests",
                       [](const Run& run) { return as_number(run.unanswered_requests); }, 0, true});
  }
  const auto verdict = [](const Run& run) {
    std::string words = verdict_code_of(run);
    std::ranges::replace(words, '_', ' ');
    return html_text(words);
  };
  return table("Throughput", runs, columns, "verdict", verdict);
}
/// Says whose latencies a table has, if these are not all requests of all runs.
inline std::string of_survivors(const std::vector<ShownRun>& runs) {
  const bool all = std::ranges::all_of(runs, [](const ShownRun& shown) {
    return shown.run->error_count() + shown.run->unanswered_requests == 0;
  });
  return all ? "" : "; of the requests that were answered rightly";
}

inline std::string latency_tables(const std::vector<ShownRun>& runs) {
  const std::string whose = of_survivors(runs) + "</span>";
  std::string html =
      latency_table("Service time <span>µs, from the send to the response" + whose,
                    "service_time_us", runs, [](const Run& run) { return &run.service_time_us; });
  if (any(runs, &Run::response_time_us)) {
    html += latency_table(
        "Response time <span>µs, from the moment at which the request was due" + whose,
        "response_time_us", runs, [](const Run& run) { return pointer_to(run.response_time_us); });
  }
  const char* const open = runs.size() <= 3 ? " open" : "";
  html += fmt::format("<details{}><summary>Of the client</summary>", open);
  if (any(runs, &Run::schedule_lag_us)) {
    html += latency_table("Schedule lag <span>µs, by which the client itself was late</span>",
                          "schedule_lag_us", runs,
                          [](const Run& run) { return pointer_to(run.schedule_lag_us); });
  }
  return html +
         latency_table("Connect time <span>µs</span>", "connect_time_us", runs,
                       [](const Run& run) { return &run.connect_time_us; }) +
         "</details>\n";
}
/// A line for each kind of requests in each run; empty if no run has several kinds.
inline std::string kinds_table(const std::vector<ShownRun>& runs) {
  std::vector<Run> kinds;  // of one kind each, without its other figures
  std::vector<ShownRun> rows;
  std::size_t count = 0;
  for (const ShownRun& shown : runs) count += shown.run->kinds.size();
  kinds.reserve(count);  // `rows` points into it
  for (const ShownRun& shown : runs) {
    for (const KindFigures& kind : shown.run->kinds) {
      kinds.emplace_back().kinds = {kind};
      rows.push_back(shown);
      rows.back().run = &kinds.back();
      rows.back().name += " " + html_text(kind.name);
    }
  }
  if (rows.empty()) return {};
  const auto of_kind = [](auto get) {
    return [=](const Run& run) -> std::optional<double> { return get(run.kinds.front()); };
  };
  const auto latency = [&](Statistic statistic) {
    return of_kind([=](const KindFigures& kind) -> std::optional<double> {
      const Latency& time = kind.response_time_us ? *kind.response_time_us : kind.service_time_us;
      return time.has(statistic) ? std::optional(time.at(statistic)) : std::nullopt;
    });
  };
  std::vector<Column> columns = {
      {"offered /s", "kind.offered_per_second",
       of_kind([](const auto& kind) { return kind.offered_per_second; })},
      {"valid /s", "kind.valid_per_second",
       of_kind([](const auto& kind) { return kind.valid_per_second; })},
      {"valid", "kind.valid_responses",
       of_kind([](const auto& kind) { return as_number(kind.valid_responses); })},
      {"errors", "kind.errors",
       of_kind([](const auto& kind) { return as_number(kind.error_count()); }), 0, true},
      {"p50 µs", "kind.p50", latency(Statistic::p50), 1},
      {"p99 µs", "kind.p99", latency(Statistic::p99), 1},
      {"max µs", "kind.max", latency(Statistic::max), 1},
  };
  return table("Kinds of requests <span>response time; of a closed loop, service time</span>", rows,
               columns, "port",
               [](const Run& run) { return std::to_string(run.kinds.front().port); });
}
/// Medians of repeats with their intervals; empty if no result has any.
inline std::string repeats_table(const std::vector<Result>& results) {
  std::string rows;
  for (std::size_t i = 0; i < results.size(); ++i) {
    for (const auto& [name, estimate] : results[i].repeats) {
      rows += fmt::format(
          "<tr><th scope=\"row\">{} {}</th><td>{}</td><td>{} to {}</td><td>{:.0f} %</td></tr>\n",
          letter_of(i, results.size()), html_text(name), grouped(estimate.median),
          grouped(estimate.low), grouped(estimate.high), 100 * estimate.confidence);
    }
  }
  if (rows.empty()) return {};
  return R"(<div class="scroll"><table><caption>Repeats</caption><thead><tr><th scope="col">figure</th>)"
         R"(<th scope="col">median</th><th scope="col">interval</th><th scope="col">confidence</th>)"
         "</tr></thead>\n<tbody>" +
         rows + "</tbody></table></div>\n";
}

}  // namespace offload::report
