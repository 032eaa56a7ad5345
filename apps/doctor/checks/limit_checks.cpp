#include <fmt/core.h>

#include <map>
#include <sstream>

#include "apps/doctor/checks/checks.hpp"
#include "core/process/limits.hpp"
#include "core/units.hpp"

namespace offload::doctor {
namespace {

/// The open files of a server with thousands of clients.
constexpr std::uint64_t kOpenFiles = 65'536;
/// A client of a server takes some 4 KiB.
constexpr std::uint64_t kMemory = kOpenFiles * 4096;
/// Server and worker have a thread for each channel, which is one for each of 64 processors here;
/// drivers have their own.
constexpr std::uint64_t kThreads = 128;
/// Less, and a region of some channels cannot be registered.
constexpr std::uint64_t kLockedBytes = std::uint64_t{1} << 30;

/// A limit and its source, for people.
struct Limit {
  std::uint64_t value;
  std::string source;
};

/// The value of a unit's setting: "infinity", "1048576", "64M", or "1024:524288" (the soft and the
/// hard limit, systemd.exec(5)). Nothing for a share of the machine, such as "50%".
std::optional<std::uint64_t> parse_setting(const std::string& text) {
  const std::size_t colon = text.find(':');
  const std::string hard = colon == std::string::npos ? text : text.substr(colon + 1);
  if (hard == "infinity") return core::kUnlimited;
  return core::parse_size(hard);
}

std::optional<std::uint64_t> setting_of(const LimitHolder& holder, const char* name) {
  const auto found = holder.settings.find(name);
  return found == holder.settings.end() ? std::nullopt : parse_setting(found->second);
}

/// Returns whether a unit that does not run has the setting in a form that is not read.
bool is_unclear(const LimitHolder& holder, const char* name) {
  return holder.process.empty() && holder.settings.contains(name) && !setting_of(holder, name);
}

/// The hard limit of a resource: of the process that runs, else of the unit.
std::optional<std::uint64_t> resource_of(const Tree& tree, const LimitHolder& holder,
                                         const char* name, const char* setting) {
  if (holder.process.empty()) return setting_of(holder, setting);
  return core::resource_limit(name, true, tree.root(), holder.process);
}

std::string with_holder(const std::string& found, const LimitHolder& holder) {
  return fmt::format("{} ({})", found, holder.name);
}

Finding unknown(const char* subject, const LimitHolder& holder) {
  return {Severity::note, subject, with_holder("unknown: not read", holder)};
}

/// The lowest limit of a process's control groups, or of a unit that does not run.
std::optional<Limit> lowest_of(const LimitHolder& holder, const char* setting,
                               const std::vector<core::ProcessLimit>& of_process) {
  if (!holder.process.empty()) {
    if (of_process.empty()) return std::nullopt;
    return Limit{of_process.front().value, of_process.front().source + ", " + holder.name};
  }
  const auto value = setting_of(holder, setting);
  if (!value || *value == core::kUnlimited) return std::nullopt;
  return Limit{*value, fmt::format("{}=, {}", setting, holder.name)};
}

/// KEY=VALUE lines of a unit, from systemctl show or from its file.
std::map<std::string, std::string> settings_in(std::istream& lines) {
  std::map<std::string, std::string> settings;
  for (std::string line; std::getline(lines, line) && !line.empty();) {
    const std::size_t equals = line.find('=');
    if (equals != std::string::npos) settings[line.substr(0, equals)] = line.substr(equals + 1);
  }
  return settings;
}

}  // namespace

std::vector<LimitHolder> limit_holders(const Tree& tree, const std::string& units) {
  std::vector<LimitHolder> holders;
  std::istringstream blocks(units);
  while (blocks) {
    auto settings = settings_in(blocks);
    if (!settings.contains("Id")) continue;
    const std::string process = settings["MainPID"];
    const bool runs = !process.empty() && process != "0";
    const std::string id = settings["Id"];
    const std::string how =
        runs ? fmt::format("/proc/{}/limits", process) : "systemctl show; it does not run";
    holders.push_back({fmt::format("{}, {}", id, how), runs ? process : "", std::move(settings)});
  }
  if (!holders.empty()) return holders;
  for (const std::string& process : processes_of_suite(tree)) {
    const std::string name = tree.read("/proc/" + process + "/comm").value_or("");
    holders.push_back({fmt::format("{}, /proc/{}/limits", name, process), process});
  }
  if (!holders.empty()) return holders;
  for (const char* const unit : {"offload-server@.service", "offload-worker@.service"}) {
    for (const char* const folder :
         {"/etc/systemd/system/", "/usr/lib/systemd/system/", "/lib/systemd/system/"}) {
      const auto text = tree.read(std::string(folder) + unit);
      if (!text) continue;
      // Sections are apart by empty lines, too.
      LimitHolder holder{std::string(folder) + unit + "; no instance is loaded", ""};
      std::istringstream lines(*text);
      while (lines) {
        for (auto& [name, value] : settings_in(lines)) holder.settings[name] = value;
      }
      holders.push_back(std::move(holder));
      break;
    }
  }
  if (!holders.empty()) return holders;
  return {
      {"of this shell, /proc/self/limits: no unit and no process of the suite is here", "self"}};
}

Findings check_open_files(const Tree& tree, const LimitHolder& holder) {
  const auto limit = resource_of(tree, holder, "Max open files", "LimitNOFILE");
  if (!limit) return {unknown("open files", holder)};
  if (*limit == core::kUnlimited) {
    return {{Severity::good, "open files", with_holder("unlimited", holder)}};
  }
  const std::string found = with_holder(fmt::format("{} at most", *limit), holder);
  if (*limit >= kOpenFiles) return {{Severity::good, "open files", found}};
  return {{Severity::warning, "open files", found,
           fmt::format("{} or more: each client of a server needs one", kOpenFiles),
           "raise LimitNOFILE= of the unit, or nofile in /etc/security/limits.conf"}};
}

Findings check_locked_memory(const Tree& tree, const LimitHolder& holder) {
  const auto limit = resource_of(tree, holder, "Max locked memory", "LimitMEMLOCK");
  if (!limit) return {unknown("locked memory", holder)};
  if (*limit == core::kUnlimited) {
    return {{Severity::good, "locked memory", with_holder("unlimited", holder)}};
  }
  const std::string found = with_holder(fmt::format("{} KiB at most", *limit >> 10U), holder);
  if (*limit >= kLockedBytes) return {{Severity::good, "locked memory", found}};
  const bool matters = !tree.names(kRdmaDevices).empty();
  return {{matters ? Severity::warning : Severity::note, "locked memory", found,
           "unlimited: memory that an RDMA device accesses is locked",
           "set LimitMEMLOCK=infinity in the unit, or memlock in /etc/security/limits.conf"}};
}

Findings check_memory(const Tree& tree, const LimitHolder& holder) {
  if (is_unclear(holder, "MemoryMax")) return {unknown("memory", holder)};
  const auto limit =
      lowest_of(holder, "MemoryMax", core::memory_limits(tree.root(), holder.process));
  if (!limit) return {{Severity::good, "memory", with_holder("no limit", holder)}};
  const std::string found = fmt::format("{} MiB at most: {}", limit->value >> 20U, limit->source);
  if (limit->value >= kMemory) return {{Severity::good, "memory", found}};
  return {{Severity::warning, "memory", found,
           fmt::format("{} MiB or more: the kernel kills a process that exceeds its group's limit",
                       kMemory >> 20U),
           "raise MemoryMax= of the unit, the limit of the container, or ulimit -v"}};
}

Findings check_threads(const Tree& tree, const LimitHolder& holder) {
  if (is_unclear(holder, "TasksMax")) return {unknown("threads", holder)};
  const auto limit =
      lowest_of(holder, "TasksMax", core::thread_limits(tree.root(), holder.process));
  if (!limit) return {{Severity::good, "threads", with_holder("no limit", holder)}};
  const std::string found = fmt::format("{} at most: {}", limit->value, limit->source);
  if (limit->value >= kThreads) return {{Severity::good, "threads", found}};
  return {{Severity::warning, "threads", found,
           fmt::format(
               "{} or more: server and worker need one for each channel, and drivers need others",
               kThreads),
           "raise TasksMax= of the unit, the limit of pids of the container, or ulimit -u"}};
}

Findings check_limits(const Tree& tree, const std::string& units) {
  Findings all;
  for (const LimitHolder& holder : limit_holders(tree, units)) {
    for (auto* const check :
         {&check_open_files, &check_memory, &check_threads, &check_locked_memory}) {
      for (Finding& finding : check(tree, holder)) all.push_back(std::move(finding));
    }
  }
  return all;
}

}  // namespace offload::doctor
