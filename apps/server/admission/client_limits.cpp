#include "apps/server/admission/client_limits.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace offload::server {
namespace {

/// As a container sees the limit of its own group: cgroup_namespaces(7).
constexpr const char* kGroupLimit = "/sys/fs/cgroup/memory.max";
constexpr std::uint64_t kShare = 4;

}  // namespace

std::uint64_t suitable_client_memory() {
  std::uint64_t memory = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                         static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    memory = std::min<std::uint64_t>(memory, limit.rlim_cur);
  }
  // "max", which is no number, where there is none.
  if (std::uint64_t group = 0; std::ifstream(kGroupLimit) >> group) {
    memory = std::min(memory, group);
  }
  return memory / kShare;
}

}  // namespace offload::server
