#pragma once

#include <chrono>
#include <string>

#include "telemetry/exposition.hpp"

namespace offload::telemetry {

/// The version of a build.
struct Build {
  const char* version;
  const char* revision;
  const char* cuda;  ///< the toolkit's version; "none"
};
[[nodiscard]] const Build& build() noexcept;

[[nodiscard]] int process_id() noexcept;

/// offload_build_info.
void add_build_info(Exposition& page, const std::string& program);

/// The process_ metrics that Prometheus' own libraries have, from /proc/self.
void add_process(Exposition& page, std::chrono::system_clock::time_point started);

}  // namespace offload::telemetry
