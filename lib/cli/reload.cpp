#include "cli/reload.hpp"

#include <exception>

#include "core/log.hpp"
#include "core/process/out_of_memory.hpp"

namespace offload::cli {

bool Reload::run() const {
  std::vector<Apply> changes;
  try {
    for (const Read& read : sources_) changes.push_back(read());
  } catch (const std::exception& error) {
    core::log_error("SIGHUP: nothing was changed: {}", core::what_of(error));
    return false;
  }
  for (const Apply& apply : changes) apply();
  core::log_info("SIGHUP: settings and keys were reread");
  return true;
}

}  // namespace offload::cli
