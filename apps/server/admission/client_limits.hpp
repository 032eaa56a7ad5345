#pragma once

#include <cstdint>
#include <string>

#include "core/clock.hpp"

namespace offload::server {

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
std::uint64_t suitable_client_memory(const std::string& root = {});

/// Throws Error (no_memory) if the next file or socket would get a descriptor from `first_reserved`
/// on, which clients may not have.
void require_room_for_clients(int first_reserved);

}  // namespace offload::server
