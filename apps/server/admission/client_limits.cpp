#include "apps/server/admission/client_limits.hpp"

#include <fmt/core.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/fd.hpp"
#include "core/process/limits.hpp"

namespace offload::server {

constexpr std::uint64_t kShare = 4;

std::uint64_t suitable_client_memory(const std::string& root) {
  std::uint64_t memory = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                         static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const auto limits = core::memory_limits(root);
  if (!limits.empty()) memory = std::min(memory, limits.front().value);
  return memory / kShare;
}

void require_room_for_clients(int first_reserved) {
  // It gets the lowest number that is free.
  const core::Fd next(
      core::check_errno(::eventfd(0, EFD_CLOEXEC), "cannot open another descriptor"));
  if (next.get() < first_reserved) return;
  const int limit = core::raise_descriptor_limit();
  throw core::Error(core::ErrorCode::no_memory,
                    fmt::format("the limit of {} open files (ulimit -n) is too low for clients: {} "
                                "are open, and {} are reserved for workers",
                                limit, next.get(), limit - first_reserved));
}

}  // namespace offload::server
