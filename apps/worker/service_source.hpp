#pragma once

#include "apps/worker/options.hpp"
#include "backend/services.hpp"
#include "core/signals.hpp"

namespace offload::worker {

/// Makes the services of --service-module, and those of --service-source, compiled for the devices
/// where they will serve. A compiler's output goes to stderr. Once in a process, before any other
/// use of a GPU. Throws Error, and core::Interrupted if a signal came meanwhile.
backend::Services make_services(const Options& options, core::Signals& signals);

}  // namespace offload::worker
