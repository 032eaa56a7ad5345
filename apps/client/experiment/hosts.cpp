#include "apps/client/experiment/hosts.hpp"

#include <fmt/core.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "apps/client/experiment/target_process.hpp"
#include "core/clock.hpp"
#include "core/error.hpp"
#include "core/fd.hpp"
#include "core/units.hpp"
#include "results/read_result.hpp"

namespace offload::client {
namespace {

using Verdict = Answer::Verdict;
using Json = nlohmann::ordered_json;

constexpr const char* kHere = "local";
constexpr int kReadings = 20;
/// An offset that is known less well would blur the begin by more than an interval may take.
constexpr double kMostUncertain = 0.01;
/// Clients connect within this time, then they wait for the begin.
constexpr double kUntilBegin = 3;
/// A client that began later than this has sent another load for that time.
constexpr double kLateBegin = 0.1;
constexpr int kAnswerLimitMs = 20'000;
constexpr auto kLook = std::chrono::milliseconds(20);
/// A client that runs longer than its load by this hangs, or its connection by ssh does.
constexpr auto kClientLimit = std::chrono::seconds(60);
constexpr auto kMergeLimit = std::chrono::minutes(5);

double clock_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// Returns a word for a shell.
std::string shell_word(const std::string& word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

/// Returns the command that runs `command` of a shell on a host.
std::string on_host(const std::string& host, const std::string& command) {
  return host == kHere
             ? command
             : "exec ssh -o BatchMode=yes " + shell_word(host) + " " + shell_word(command);
}

/// Returns a program beside this one, for this host.
std::string beside(const std::string& program) {
  std::error_code none;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", none).parent_path() / program;
  return std::filesystem::exists(path, none) ? shell_word(path) : program;
}

/// Returns a host's name as a part of a file's name.
std::string file_part(std::string host) {
  std::ranges::replace_if(
      host, [](unsigned char c) { return std::isalnum(c) == 0; }, '-');
  return host;
}

/// Asks once. Throws Error if the host does not answer in time.
ClockReading read_clock(int channel, const std::string& host) {
  ClockReading reading;
  reading.before = clock_now();
  (void)::send(channel, "\n", 1, MSG_NOSIGNAL);
  std::string line;
  for (char c = 0; !line.ends_with('\n');) {
    pollfd wait{channel, POLLIN, 0};
    if (::poll(&wait, 1, kAnswerLimitMs) != 1 || ::read(channel, &c, 1) != 1) {
      throw core::Error(core::ErrorCode::not_connected,
                        fmt::format("{} does not tell its time", host));
    }
    line += c;
  }
  reading.after = clock_now();
  line.pop_back();
  const auto answer = core::parse_number<double>(line);
  if (!answer) {
    throw core::Error(core::ErrorCode::bad_message, fmt::format("{} tells no time", host));
  }
  reading.answer = *answer;
  return reading;
}

ClockOffset measure_clock(const std::string& host, const std::string& log) {
  if (host == kHere) return {};
  int ends[2];
  core::check_errno(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), "socketpair");
  const core::Fd channel(ends[0]);
  core::Fd other(ends[1]);
  const TargetProcess process(on_host(host, "while read line; do date +%s.%N; done"), log,
                              other.get());
  other.reset();
  (void)read_clock(channel.get(), host);  // the connection takes its time
  std::vector<ClockReading> readings;
  for (int i = 0; i < kReadings; ++i) readings.push_back(read_clock(channel.get(), host));
  ::shutdown(channel.get(), SHUT_WR);
  return offset_of(readings);
}

std::string text_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The clients of one run.
class HostRun {
 public:
  HostRun(const Experiment& experiment, const ExperimentTarget& target, const ExperimentLoad& load,
          const std::string& folder, const std::vector<HostClock>& clocks)
      : clocks_(clocks),
        begin_(clock_now() + kUntilBegin),
        deadline_(core::Clock::now() + core::seconds(kUntilBegin) + experiment.time +
                  kClientLimit) {
    const Options options = options_of(experiment, target, load);
    for (std::size_t i = 0; i < clocks.size(); ++i) {
      const bool is_here = clocks[i].host == kHere;
      std::string command = is_here ? beside("offload-client") : "offload-client";
      for (const std::string& word : words_of(experiment, target, load)) {
        if (!word.starts_with("--seed=")) command += " " + shell_word(word);
      }
      command += fmt::format(" --seed={} --start-at={:.6f} --output=-", options.seed + i,
                             begin_ + clocks[i].clock.offset);
      const std::string name =
          fmt::format("{}/{}-client-{}-{}", folder, target.name, i + 1, file_part(clocks[i].host));
      files_.push_back(name + ".json");
      processes_.emplace_back(on_host(clocks[i].host, command) + " >" + shell_word(files_.back()),
                              name + ".log");
    }
  }

  /// Waits for the clients. Returns what prevents a result, empty if nothing does.
  Answer wait(core::Signals& signals) {
    for (std::size_t i = 0; i < processes_.size(); ++i) {
      while (!processes_[i].wait_until(core::Clock::now() + kLook)) {
        if (signals.take() != 0) return {Verdict::interrupted, "interrupted"};
        if (core::Clock::now() < deadline_) continue;
        return {Verdict::failed, fmt::format("the client on {} did not end in time: see '{}'",
                                             clocks_[i].host, processes_[i].log())};
      }
    }
    return {};
  }

  /// Sets the times in the results to this machine's clock. Returns why there is no result to
  /// merge, empty if there is one.
  Answer align() {
    for (std::size_t i = 0; i < files_.size(); ++i) {
      const std::string& host = clocks_[i].host;
      Json json = Json::parse(text_of_file(files_[i]), nullptr, /*allow_exceptions=*/false);
      if (!json.is_object() || !json.contains("runs") || json["runs"].empty()) {
        return {Verdict::failed,
                fmt::format("no result of the client on {}: see '{}'", host, processes_[i].log())};
      }
      for (auto& run : json["runs"]) {
        const double begin = run.value("started_at_unix_s", 0.0) - clocks_[i].clock.offset;
        if (begin - begin_ > kLateBegin) {
          return {Verdict::cannot_tell,
                  fmt::format("cannot be told: the client on {} began {:.3f} s late", host,
                              begin - begin_)};
        }
        run["started_at_unix_s"] = begin;
      }
      std::ofstream(files_[i]) << json.dump(2);
    }
    return {};
  }

  [[nodiscard]] const std::vector<std::string>& files() const noexcept { return files_; }

 private:
  const std::vector<HostClock>& clocks_;
  double begin_;
  core::TimePoint deadline_;
  std::vector<std::string> files_;
  std::vector<TargetProcess> processes_;
};

/// Merges results by offload-report into `merged`. Throws Error.
void merge_files(const std::vector<std::string>& files, const std::string& merged) {
  std::string command = beside("offload-report") + " merge -o " + shell_word(merged);
  for (const std::string& file : files) command += " " + shell_word(file);
  std::filesystem::remove(merged);
  const std::string log = merged + ".log";
  TargetProcess process(command, log);
  if (process.wait_until(core::Clock::now() + kMergeLimit) && std::filesystem::exists(merged))
    return;
  throw core::Error(core::ErrorCode::io_failed, "no merged result: " + text_of_file(log));
}

Answer answer_in(const results::Result& merged, std::size_t hosts) {
  const results::Run& run = merged.runs.front();
  if (merged.status == "failed" || run.error_count() != 0) {
    return {Verdict::failed, merged.faults.empty() ? "errors; see the result" : merged.faults[0]};
  }
  if (run.verdict_code == "server_late") return {Verdict::failed, run.verdict_text};
  if (run.verdict_code != "kept_up" && run.verdict_code != "closed_loop") {
    return {Verdict::cannot_tell, "cannot be told: " + run.verdict_text};
  }
  return {Verdict::answered, fmt::format("no errors in {} answers in {:.1f} s, from {} hosts",
                                         run.operation_count, run.duration_seconds, hosts)};
}

}  // namespace

ClockOffset offset_of(const std::vector<ClockReading>& readings) {
  const auto time_of = [](const ClockReading& reading) { return reading.after - reading.before; };
  const ClockReading& best = *std::ranges::min_element(readings, {}, time_of);
  return {best.answer - (best.before + best.after) / 2, time_of(best) / 2};
}

Answer run_on_hosts(const Experiment& experiment, const ExperimentTarget& target,
                    const ExperimentLoad& load, const std::string& folder, core::Signals& signals,
                    std::vector<HostClock>& clocks, std::string& result) {
  clocks.clear();
  for (const std::string& host : experiment.hosts) {
    clocks.push_back(
        {host, measure_clock(host, fmt::format("{}/clock-{}.log", folder, file_part(host)))});
    const double uncertainty = clocks.back().clock.uncertainty;
    if (uncertainty <= kMostUncertain) continue;
    return {
        Verdict::cannot_tell,
        fmt::format("cannot be told: the clock of {} is known to {:.1f} ms only, {:g} is the most",
                    host, 1e3 * uncertainty, 1e3 * kMostUncertain)};
  }
  HostRun run(experiment, target, load, folder, clocks);
  if (Answer wrong = run.wait(signals); !wrong.sentence.empty()) return wrong;
  if (Answer wrong = run.align(); !wrong.sentence.empty()) return wrong;
  const std::string merged = fmt::format("{}/{}-merged.json", folder, target.name);
  merge_files(run.files(), merged);
  result = text_of_file(merged);
  return answer_in(results::read_result(merged), clocks.size());
}

}  // namespace offload::client
