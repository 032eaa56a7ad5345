#pragma once

#include "apps/worker/options.hpp"
#include "backend/services.hpp"
#include "core/signals.hpp"

namespace offload::worker {

/// The services of --service-module, and those of --service-source, which are compiled for where
/// they will serve. What a compiler says goes to stderr. Once in a process, as the first to use a
/// GPU. Throws Error, and Interrupted if a signal came meanwhile.
backend::Services make_services(const Options& options, core::Signals& signals);

}  // namespace offload::worker
