#include <fmt/core.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <sstream>

#include "apps/doctor/checks/checks.hpp"
#include "core/units.hpp"

namespace offload::doctor {
namespace {

constexpr const char* kStat = "/proc/stat";
constexpr const char* kCpus = "/sys/devices/system/cpu";
/// A share of the processors' time, from which on a measurement shows it.
constexpr double kMuch = 0.01;
/// More processes are not named.
constexpr std::size_t kNamed = 3;

Finding unknown(const char* subject, const std::string& file) {
  return {Severity::note, subject, "unknown: no " + file};
}

bool is_number(const std::string& text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

/// Times in clock ticks, since the boot or, as a difference, in an interval.
struct Ticks {
  std::uint64_t all = 0;
  std::uint64_t steal = 0;
  struct Process {
    std::string name;
    std::uint64_t time;  ///< user and system
  };
  std::map<std::string, Process> processes;  ///< by their ids: a kernel thread changes its name

  Ticks& operator-=(const Ticks& before) {
    all -= std::min(before.all, all);
    steal -= std::min(before.steal, steal);
    for (auto& [id, process] : processes) {
      const auto found = before.processes.find(id);
      if (found != before.processes.end()) {
        process.time -= std::min(found->second.time, process.time);
      }
    }
    return *this;
  }
};

/// proc_pid_stat(5): the name is in parentheses and may have any character; user and system time
/// are the 12th and 13th field behind it.
void add_process(Ticks& ticks, const Tree& tree, const std::string& id) {
  const std::string line = tree.read("/proc/" + id + "/stat").value_or("");
  const std::size_t begin = line.find('(');
  const std::size_t end = line.rfind(')');
  if (begin == std::string::npos || end == std::string::npos || end < begin) return;
  std::istringstream words(line.substr(end + 1));
  std::string ignored;
  for (int field = 0; field < 11; ++field) words >> ignored;
  std::uint64_t user = 0;
  std::uint64_t system = 0;
  words >> user >> system;
  ticks.processes[id] = {line.substr(begin + 1, end - begin - 1), user + system};
}

/// proc_stat(5). Nothing if there is no line of all processors.
std::optional<Ticks> read_ticks(const Tree& tree) {
  std::istringstream words(tree.read(kStat).value_or(""));
  std::string cpu;
  words >> cpu;
  if (cpu != "cpu") return std::nullopt;
  Ticks ticks;
  std::array<std::uint64_t, 8> times{};  // user, nice, system, idle, iowait, irq, softirq, steal
  for (std::uint64_t& time : times) {
    words >> time;
    ticks.all += time;
  }
  ticks.steal = times.back();
  for (const std::string& id : tree.names("/proc")) {
    if (is_number(id)) add_process(ticks, tree, id);
  }
  return ticks;
}

std::size_t count_cpus(const Tree& tree) {
  return static_cast<std::size_t>(
      std::ranges::count_if(tree.names(kCpus), [](const std::string& name) {
        return name.starts_with("cpu") && is_number(name.substr(3));
      }));
}

Finding steal_in(const Ticks& ticks, const char* when) {
  const double share = static_cast<double>(ticks.steal) / static_cast<double>(ticks.all);
  const std::string found = fmt::format("{:.1f} % of the processors' time {}", 100 * share, when);
  if (share < kMuch) return {Severity::good, "steal time", found};
  return {
      Severity::warning, "steal time", found,
      fmt::format("less than {:.0f} %: the hypervisor gives the time to other machines, and "
                  "every latency has these pauses",
                  100 * kMuch),
      "pin the virtual processors on the host, use a dedicated instance, or measure on hardware"};
}

/// The programs of the suite are meant to use the processors.
Finding others_in(const Ticks& ticks, std::size_t cpus, const char* when) {
  std::vector<std::pair<std::uint64_t, std::string>> others;
  std::uint64_t sum = 0;
  for (const auto& [id, process] : ticks.processes) {
    if (process.time == 0 || process.name.starts_with("offload-")) continue;
    others.emplace_back(process.time, fmt::format("{} ({})", process.name, id));
    sum += process.time;
  }
  std::ranges::sort(others, std::greater());
  const double in_cpus = static_cast<double>(cpus) / static_cast<double>(ticks.all);
  std::vector<std::string> named;
  for (const auto& [time, name] : others) {
    if (named.size() == kNamed) break;
    named.push_back(fmt::format("{} {:.2f}", name, static_cast<double>(time) * in_cpus));
  }
  const std::string found =
      fmt::format("{:.2f} of {} processors {}{}{}", static_cast<double>(sum) * in_cpus, cpus, when,
                  named.empty() ? "" : ": ", fmt::join(named, ", "));
  if (static_cast<double>(sum) < kMuch * static_cast<double>(ticks.all)) {
    return {Severity::good, "other processes", found};
  }
  return {Severity::warning, "other processes", found,
          fmt::format("less than {:.0f} % of all processors: others delay the threads that poll",
                      100 * kMuch),
          "end them, or keep them off the processors of server and worker (CPUAffinity=, taskset)"};
}

/// A thread of server or worker that may run on one processor only.
struct PinnedThread {
  std::string name;
  std::string cpu;
};

/// A line of /proc/PID/task/ID/status.
std::string status_line(const std::string& status, const std::string& key) {
  std::istringstream lines(status);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(key + ":\t")) return line.substr(key.size() + 2);
  }
  return {};
}

std::vector<PinnedThread> pinned_threads(const Tree& tree) {
  std::vector<PinnedThread> threads;
  for (const std::string& process : processes_of_suite(tree)) {
    const std::string tasks = "/proc/" + process + "/task";
    for (const std::string& id : tree.names(tasks)) {
      const std::string status = tree.read(fmt::format("{}/{}/status", tasks, id)).value_or("");
      const std::string cpus = status_line(status, "Cpus_allowed_list");
      if (is_number(cpus)) threads.push_back({status_line(status, "Name") + " (" + id + ")", cpus});
    }
  }
  return threads;
}

}  // namespace

std::vector<std::string> processes_of_suite(const Tree& tree) {
  std::vector<std::string> found;
  for (const std::string& id : tree.names("/proc")) {
    if (!is_number(id)) continue;
    const auto name = tree.read("/proc/" + id + "/comm");
    if (name == "offload-server" || name == "offload-worker") found.push_back(id);
  }
  return found;
}

Findings check_processor_time(const Tree& tree, const std::function<void()>& wait) {
  const auto before = read_ticks(tree);
  if (!before) return {unknown("steal time", kStat), unknown("other processes", kStat)};
  Ticks ticks = *before;
  const char* when = "since the boot";
  if (wait) {
    wait();
    ticks = read_ticks(tree).value_or(*before);
    ticks -= *before;
    when = "in half a second";
  }
  if (ticks.all == 0) {
    const std::string found = "unknown: no time has passed in /proc/stat";
    return {{Severity::note, "steal time", found}, {Severity::note, "other processes", found}};
  }
  const Finding steal = steal_in(ticks, when);
  const std::size_t cpus = count_cpus(tree);
  if (cpus == 0) return {steal, unknown("other processes", std::string(kCpus) + "/cpu*")};
  return {steal, others_in(ticks, cpus, when)};
}

Findings check_load(const Tree& tree) {
  const auto averages = tree.read("/proc/loadavg");
  if (!averages) return {unknown("load", "/proc/loadavg")};
  std::istringstream words(*averages);
  double minute = 0;
  words >> minute;
  const std::size_t cpus = count_cpus(tree);
  const std::string found = fmt::format("{:.2f} in the last minute, {} processors", minute, cpus);
  if (cpus == 0 || minute <= static_cast<double>(cpus)) return {{Severity::good, "load", found}};
  return {{Severity::warning, "load", found,
           "at most the number of processors: otherwise threads wait for one",
           "end other programs, or give server and worker fewer threads (--threads)"}};
}

Findings check_siblings(const Tree& tree) {
  const char* const subject = "smt siblings";
  const std::string file = std::string(kCpus) + "/smt/active";
  const auto active = tree.read(file);
  if (!active) return {unknown(subject, file)};
  if (*active == "0") return {{Severity::good, subject, "off: each processor is a core"}};
  std::map<std::string, std::set<std::string>> cores;  // the threads by the siblings of their core
  const auto threads = pinned_threads(tree);
  for (const PinnedThread& thread : threads) {
    const std::string siblings =
        tree.read(fmt::format("{}/cpu{}/topology/thread_siblings_list", kCpus, thread.cpu))
            .value_or(thread.cpu);
    cores[siblings].insert(fmt::format("{} on {}", thread.name, thread.cpu));
  }
  std::vector<std::string> shared;
  for (const auto& [siblings, all] : cores) {
    if (all.size() > 1) {
      shared.push_back(fmt::format("processors {}: {}", siblings, fmt::join(all, ", ")));
    }
  }
  if (!shared.empty()) {
    return {{Severity::warning, subject,
             fmt::format("threads share a core: {}", fmt::join(shared, "; ")),
             "one thread a core: a thread that polls takes half of the core from its sibling",
             "choose processors of different cores by --cpu of the server, see lscpu -e"}};
  }
  if (!threads.empty()) {
    return {{Severity::good, subject,
             fmt::format("on; the {} pinned threads of server and worker have a core each",
                         threads.size())}};
  }
  return {{Severity::note, subject, "on; no server or worker with pinned threads runs here",
           "one thread that polls a core",
           "choose processors of different cores by --cpu of the server, see lscpu -e"}};
}

Findings check_turbo(const Tree& tree) {
  const std::string intel = std::string(kCpus) + "/intel_pstate/no_turbo";
  const std::string other = std::string(kCpus) + "/cpufreq/boost";
  const auto off = tree.read(intel);
  const auto on = tree.read(other);
  if (!off && !on) return {unknown("turbo", intel + " or " + other)};
  if (off ? *off == "1" : *on == "0") return {{Severity::good, "turbo", "off"}};
  return {{Severity::note, "turbo", "on: the frequency depends on temperature and on other cores",
           "off, where runs are compared", off ? "echo 1 >" + intel : "echo 0 >" + other}};
}

Findings check_clock_discipline(const std::optional<timex>& clock) {
  const char* const subject = "clock discipline";
  if (!clock) return {{Severity::note, subject, "unknown: adjtimex(2) was not called or failed"}};
  const double in_ms = (clock->status & STA_NANO) != 0 ? 1e-6 : 1e-3;
  const std::string figures = fmt::format(
      "offset {:.3f} ms, error at most {:.3f} ms, frequency {:+.1f} ppm",
      static_cast<double>(clock->offset) * in_ms, static_cast<double>(clock->maxerror) * 1e-3,
      static_cast<double>(clock->freq) / 65536);
  if ((clock->status & STA_UNSYNC) == 0) {
    return {{Severity::good, subject, "synchronised: " + figures}};
  }
  return {{Severity::note, subject, "not synchronised: " + figures,
           "synchronised, where times of several machines are compared",
           "install chrony, or timedatectl set-ntp true"}};
}

}  // namespace offload::doctor
