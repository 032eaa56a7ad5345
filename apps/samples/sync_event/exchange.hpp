#pragma once

#include <cstdint>
#include <string>

#include "cli/log_options.hpp"
#include "tasks/sync/sync_event.hpp"

/// Shared by the two programs of this sample: the command line, and the signals that they exchange.
namespace offload::samples {

inline constexpr std::uint64_t kRounds = 1000;
inline constexpr core::Duration kPatience = std::chrono::seconds(30);

struct SyncEventOptions {
  std::string comch = "unix:/tmp/dpu-gpu-offload-sample.sock";
  bool async = false;       ///< by tasks of a context instead of the event's own functions
  std::uint32_t depth = 8;  ///< with async: waits in flight, of 1 to kRounds
  bool atomic = false;      ///< signal by add(), else by set()
  cli::LogOptions log;
};

/// The body of the main of both: parses the command line, starts the log and calls `run`. Returns
/// the exit status.
int sync_event_sample(const std::string& program, const std::string& description, int argc,
                      const char* const* argv, void (*run)(const SyncEventOptions& options));

/// The host signals first: it makes the event 1, 3, 5 ..., the DPU 2, 4, 6 ...
enum class ExchangeSide : std::uint8_t { host, dpu };

/// Signals the other side kRounds times, and waits for as many signals of it, in turn. Throws Error
/// (timed_out) after kPatience without one.
void exchange_signals(sync::SyncEvent& event, ExchangeSide side, const SyncEventOptions& options);

}  // namespace offload::samples
