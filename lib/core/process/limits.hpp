#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace offload::core {

/// A resource limit of a process, and the source of the limit.
struct ProcessLimit {
  std::uint64_t value;
  std::string source;  ///< the file of a control group, or an option as in "ulimit -v"
};

/// Returns the limits of a process's memory in bytes, the lowest first: those of its control
/// groups and of all groups above them (memory.max of version 2, memory.limit_in_bytes of version
/// 1), and RLIMIT_AS. Empty if there is none, or if /proc cannot be read. `root` is put before each
/// path that is read; a test has files of its own there. `process` is a name in /proc. Any thread.
std::vector<ProcessLimit> memory_limits(const std::string& root = {},
                                        const std::string& process = "self");

/// Returns the limits of a process's threads in the same way: pids.max of its control groups and
/// RLIMIT_NPROC, which counts all threads of the user, and does not hold for root.
std::vector<ProcessLimit> thread_limits(const std::string& root = {},
                                        const std::string& process = "self");

inline constexpr std::uint64_t kUnlimited = UINT64_MAX;

/// Returns a resource limit of a process by its name in /proc/PID/limits, such as "Max open files",
/// in the unit of that file: the hard limit if `is_hard`, else the soft one. kUnlimited: there is
/// no limit. Nothing if the file does not have it. Any thread.
std::optional<std::uint64_t> resource_limit(const std::string& name, bool is_hard,
                                            const std::string& root = {},
                                            const std::string& process = "self");

/// Returns limits as text: "3 (/sys/fs/cgroup/pids/a/pids.max), 4096 (ulimit -u)".
std::string to_text(const std::vector<ProcessLimit>& limits);

}  // namespace offload::core
