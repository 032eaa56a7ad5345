#include "core/process/limits.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <fstream>
#include <sstream>
#include <string_view>

#include "core/units.hpp"

namespace offload::core {
namespace {

/// Version 1 of control groups has no word for "no limit": it shows LONG_MAX, rounded down to a
/// page.
constexpr std::uint64_t kLeastUnlimited = std::uint64_t{1} << 62;

bool contains(std::string_view list, std::string_view name) {
  std::string_view rest = list;
  while (true) {
    const std::size_t comma = rest.find(',');
    if (rest.substr(0, comma) == name) return true;
    if (comma == std::string_view::npos) return false;
    rest.remove_prefix(comma + 1);
  }
}

/// Undoes what proc_pid_mountinfo(5) does to blanks and backslashes: "\040" is a blank.
std::string unescaped(std::string_view text) {
  constexpr std::size_t kDigits = 3;
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned code = 0;
    const char* const digits = text.data() + i + 1;
    const bool is_escape =
        text[i] == '\\' && i + kDigits < text.size() &&
        std::from_chars(digits, digits + kDigits, code, 8).ptr == digits + kDigits;
    plain += is_escape ? static_cast<char>(code) : text[i];
    if (is_escape) i += kDigits;
  }
  return plain;
}

/// A mounted hierarchy of control groups, or a part of one.
struct Mount {
  bool is_version_2;
  std::string controllers;  ///< of version 1, among other options: "rw,memory"
  std::string group;        ///< what is mounted: "/" is the whole hierarchy
  std::string folder;
};

std::vector<Mount> group_mounts(const std::string& root) {
  std::vector<Mount> mounts;
  std::ifstream lines(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(lines, line);) {
    const std::size_t separator = line.find(" - ");
    if (separator == std::string::npos) continue;
    std::istringstream before(line.substr(0, separator));
    std::istringstream after(line.substr(separator + 3));
    std::string ignored;
    std::string group;
    std::string folder;
    std::string type;
    std::string options;
    before >> ignored >> ignored >> ignored >> group >> folder;
    after >> type >> ignored >> options;
    if (type != "cgroup" && type != "cgroup2") continue;
    mounts.push_back({type == "cgroup2", options, unescaped(group), unescaped(folder)});
  }
  return mounts;
}

/// The path of `group` below `parent`, "" or beginning with '/'. Nothing if it is not there.
std::optional<std::string> path_below(const std::string& parent, const std::string& group) {
  if (parent == "/") return group == "/" ? std::string() : group;
  if (!group.starts_with(parent)) return std::nullopt;
  const std::string rest = group.substr(parent.size());
  return rest.empty() || rest.front() == '/' ? std::optional(rest) : std::nullopt;
}

/// Adds what a file says in the folder of `group` and in those above it, up to the mount.
void add_limits(std::vector<ProcessLimit>& limits, const std::string& root, const Mount& mount,
                std::string group, const char* file) {
  while (true) {
    const std::string path = mount.folder + group + '/' + file;
    std::string text;
    // "max", which is no number, where there is no limit.
    std::ifstream(root + path) >> text;
    const auto value = parse_number<std::uint64_t>(text);
    if (value && *value < kLeastUnlimited) limits.push_back({*value, path});
    if (group.empty()) return;
    group.erase(group.rfind('/'));
  }
}

/// The names of the file with a limit, in each version of control groups.
struct GroupLimit {
  const char* controller;  ///< of version 1
  const char* file_1;
  const char* file_2;
};
constexpr GroupLimit kMemory{"memory", "memory.limit_in_bytes", "memory.max"};
constexpr GroupLimit kThreads{"pids", "pids.max", "pids.max"};

/// Looks for the group of each line of /proc/PID/cgroup, "ID:CONTROLLERS:GROUP", where its
/// hierarchy is mounted: cgroups(7). Version 2 has no controllers there.
std::vector<ProcessLimit> group_limits(const std::string& root, const std::string& process,
                                       const GroupLimit& limit) {
  std::vector<ProcessLimit> limits;
  const std::vector<Mount> mounts = group_mounts(root);
  std::ifstream lines(root + "/proc/" + process + "/cgroup");
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    const bool is_version_2 = controllers.empty();
    if (!is_version_2 && !contains(controllers, limit.controller)) continue;
    // "/.." is not visible to this process: cgroup_namespaces(7).
    if (!group.starts_with('/') || group.starts_with("/..")) continue;
    const char* const file = is_version_2 ? limit.file_2 : limit.file_1;
    const Mount* other = nullptr;
    bool found = false;
    for (const Mount& mount : mounts) {
      if (mount.is_version_2 != is_version_2) continue;
      if (!is_version_2 && !contains(mount.controllers, limit.controller)) continue;
      const auto path = path_below(mount.group, group);
      if (path) add_limits(limits, root, mount, *path, file);
      found = found || path;
      if (other == nullptr) other = &mount;
    }
    // In some containers the group has a name of the outside, and what is mounted is the group.
    if (!found && other != nullptr) add_limits(limits, root, *other, "", file);
  }
  return limits;
}

/// The limits of control groups, and a resource limit that is set by `option`.
std::vector<ProcessLimit> all_limits(const std::string& root, const std::string& process,
                                     const GroupLimit& limit, const char* resource,
                                     const char* option) {
  auto limits = group_limits(root, process, limit);
  const auto value = resource_limit(resource, false, root, process);
  if (value && *value != kUnlimited) limits.push_back({*value, option});
  std::ranges::stable_sort(limits, {}, &ProcessLimit::value);
  return limits;
}

}  // namespace

std::optional<std::uint64_t> resource_limit(const std::string& name, bool is_hard,
                                            const std::string& root, const std::string& process) {
  std::ifstream lines(root + "/proc/" + process + "/limits");
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(name + "  ")) continue;  // in columns
    std::istringstream words(line.substr(name.size()));
    std::string soft;
    std::string hard;
    words >> soft >> hard;
    const std::string& word = is_hard ? hard : soft;
    return word == "unlimited" ? kUnlimited : parse_number<std::uint64_t>(word);
  }
  return std::nullopt;
}

std::vector<ProcessLimit> memory_limits(const std::string& root, const std::string& process) {
  return all_limits(root, process, kMemory, "Max address space", "ulimit -v");
}

std::vector<ProcessLimit> thread_limits(const std::string& root, const std::string& process) {
  return all_limits(root, process, kThreads, "Max processes", "ulimit -u");
}

std::string to_text(const std::vector<ProcessLimit>& limits) {
  std::string text;
  for (const ProcessLimit& limit : limits) {
    if (!text.empty()) text += ", ";
    text += std::to_string(limit.value) + " (" + limit.source + ")";
  }
  return text;
}

}  // namespace offload::core
