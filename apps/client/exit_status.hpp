#pragma once

#include "apps/client/run/campaign.hpp"

namespace offload::client {

enum : int { kFailed = 1, kInvalid, kServerLate, kClientLate, kTooFew, kInterrupted = 130 };

/// Returns the exit status of a command that made the runs of `campaign`.
inline int status_of(const Campaign& campaign, const Options& options) {
  if (campaign.has_failed()) return kFailed;
  if (campaign.interrupted()) return kInterrupted;
  if (options.search || options.scan) return 0;  // these may reach the server's limit
  int status = 0;
  for (const RunResult& run : campaign.runs) {
    if (run.verdict.code == LoadVerdict::Code::client_late) return kClientLate;
    if (run.verdict.code == LoadVerdict::Code::server_late) status = kServerLate;
    if (run.verdict.code == LoadVerdict::Code::too_few && status == 0) status = kTooFew;
  }
  return status;
}

}  // namespace offload::client
