#include "apps/server/admission/client_limits.hpp"

#include <unistd.h>

#include <algorithm>

#include "core/process/limits.hpp"

namespace offload::server {
namespace {

constexpr std::uint64_t kShare = 4;

}  // namespace

std::uint64_t suitable_client_memory(const std::string& root) {
  std::uint64_t memory = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                         static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const auto limits = core::memory_limits(root);
  if (!limits.empty()) memory = std::min(memory, limits.front().value);
  return memory / kShare;
}

}  // namespace offload::server
