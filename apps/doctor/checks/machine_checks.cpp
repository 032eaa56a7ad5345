#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <sstream>

#include "apps/doctor/checks/checks.hpp"

namespace offload::doctor {
namespace {

/// The server's own backlog; the kernel cuts it to its limit.
constexpr std::int64_t kBacklog = 4096;

struct Version {
  int major_number;
  int minor_number;
};

std::optional<Version> version_of(const std::string& text) {
  Version version{};
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, version.major_number);
  if (first.ec != std::errc{} || first.ptr == end || *first.ptr != '.') return std::nullopt;
  const auto second = std::from_chars(first.ptr + 1, end, version.minor_number);
  return second.ec == std::errc{} ? std::optional(version) : std::nullopt;
}

}  // namespace

Findings check_kernel(const Tree& tree) {
  const auto release = tree.read("/proc/sys/kernel/osrelease");
  const auto version = release ? version_of(*release) : std::nullopt;
  if (!version) {
    return {{Severity::note, "kernel", release.value_or("no release"), "Linux 5.12 or later", ""}};
  }
  const bool is_new =
      version->major_number > 5 || (version->major_number == 5 && version->minor_number >= 12);
  if (is_new) return {{Severity::good, "kernel", *release}};
  return {{Severity::warning, "kernel", *release,
           "Linux 5.12 or later: earlier ones cannot register GPU memory by its dma-buf",
           "install a newer kernel, or the module nvidia_peermem"}};
}

Findings check_clock(const Tree& tree) {
  constexpr const char* kSource =
      "/sys/devices/system/clocksource/clocksource0/current_clocksource";
  const auto source = tree.read(kSource);
  if (!source) return {{Severity::note, "clock source", std::string("unknown: no ") + kSource}};
  constexpr std::array kFast{"tsc", "arch_sys_counter", "kvm-clock", "hyperv_clocksource_tsc_page"};
  const bool is_fast = std::ranges::find(kFast, *source) != kFast.end();
  if (is_fast) return {{Severity::good, "clock source", *source}};
  return {{Severity::warning, "clock source", *source,
           "tsc: reading another clock takes a system call, some hundred ns",
           "boot with tsc=reliable if the processor's counter is, see dmesg | grep -i tsc"}};
}

Findings check_governor(const Tree& tree) {
  std::map<std::string, int> counts;
  for (const std::string& cpu : tree.names("/sys/devices/system/cpu")) {
    if (!cpu.starts_with("cpu")) continue;
    const auto governor = tree.read("/sys/devices/system/cpu/" + cpu + "/cpufreq/scaling_governor");
    if (governor) ++counts[*governor];
  }
  if (counts.empty()) {
    return {
        {Severity::note, "cpu governor",
         "unknown: no /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor: the kernel sets no "
         "frequencies"}};
  }
  std::string found;
  for (const auto& [governor, count] : counts) {
    found += fmt::format("{}{} on {}", found.empty() ? "" : ", ", governor, count);
  }
  if (counts.size() == 1 && counts.contains("performance")) {
    return {{Severity::good, "cpu governor", found}};
  }
  return {{Severity::warning, "cpu governor", found,
           "performance on all: other governors slow a processor down between requests",
           "cpupower frequency-set -g performance"}};
}

Findings check_huge_pages(const Tree& tree) {
  const auto reserved = tree.number("/proc/sys/vm/nr_hugepages");
  const auto transparent = tree.read("/sys/kernel/mm/transparent_hugepage/enabled");
  const std::string found = fmt::format("{} reserved, transparent ones: {}", reserved.value_or(0),
                                        transparent.value_or("none"));
  if (reserved.value_or(0) > 0) return {{Severity::good, "huge pages", found}};
  return {{Severity::note, "huge pages", found, "some, for regions that request them",
           "sysctl vm.nr_hugepages=COUNT"}};
}

Findings check_listen_backlog(const Tree& tree) {
  const auto most = tree.number("/proc/sys/net/core/somaxconn");
  if (!most) {
    return {{Severity::note, "listen backlog", "unknown: no /proc/sys/net/core/somaxconn"}};
  }
  const std::string found = std::to_string(*most);
  if (*most >= kBacklog) return {{Severity::good, "listen backlog", found}};
  return {{Severity::warning, "listen backlog", found,
           fmt::format("{} or more: otherwise clients that connect at once may wait for a second",
                       kBacklog),
           fmt::format("sysctl net.core.somaxconn={}", kBacklog)}};
}

Findings check_af_xdp(const Tree& tree) {
  std::istringstream lines(tree.read("/proc/net/protocols").value_or(""));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("XDP ")) return {{Severity::good, "AF_XDP", "in the kernel"}};
  }
  return {{Severity::note, "AF_XDP", "not in the kernel",
           "only packet processing with AF_XDP needs it", "use a kernel with CONFIG_XDP_SOCKETS"}};
}

}  // namespace offload::doctor
