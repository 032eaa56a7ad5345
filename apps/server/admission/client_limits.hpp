#pragma once

#include <fmt/core.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "core/clock.hpp"
#include "core/error.hpp"
#include "core/fd.hpp"
#include "core/process/limits.hpp"

namespace offload::server {

inline constexpr std::uint64_t kShare = 4;

/// The limits of clients; the help text describes each (options.cpp).
struct ClientLimits {
  std::uint64_t memory = 0;       ///< of all together, bytes; 0: suitable_client_memory()
  std::uint32_t connections = 0;  ///< 0: as many as there are descriptors
  std::uint32_t per_address = 0;  ///< 0: three quarters of these
  core::Duration frame_timeout = core::seconds(30);    ///< 0: never
  core::Duration idle_timeout{};                       ///< 0: never
  core::Duration output_timeout = core::seconds(120);  ///< --client-timeout; 0: never
};

/// Returns a quarter of the memory that this process can have, in bytes: of the machine's memory,
/// or of the lowest limit (core::memory_limits). `root`: as there.
inline std::uint64_t suitable_client_memory(const std::string& root = {}) {
  std::uint64_t memory = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                         static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const auto limits = core::memory_limits(root);
  if (!limits.empty()) memory = std::min(memory, limits.front().value);
  return memory / kShare;
}

/// Throws Error (no_memory) if the next file or socket would get a descriptor from `first_reserved`
/// on, which clients may not have.
inline void require_room_for_clients(int first_reserved) {
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
