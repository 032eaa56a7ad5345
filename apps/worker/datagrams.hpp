#pragma once

#include "apps/worker/options.hpp"
#include "apps/worker/program.hpp"
#include "core/signals.hpp"

namespace offload::worker {

/// The worker with --udp: requests come as UDP datagrams to queues of a network interface, and
/// the thread or warp that has a queue answers them, without a server. Runs until a signal. Throws
/// Error: not_supported in a build without libbpf.
ExitStatus run_datagrams(const Options& options, core::Signals& signals);

}  // namespace offload::worker
