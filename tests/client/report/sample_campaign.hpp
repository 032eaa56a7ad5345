#pragma once

#include "apps/client/run/campaign.hpp"

namespace offload::client {

/// A run of 2 s: 4 requests of 1 GiB each way, 2 answered rightly, one wrongly, one not at all.
inline RunResult sample_run(bool open_loop) {
  using namespace std::chrono_literals;
  RunResult run;
  run.setting.max_concurrent_messages = 16;
  if (open_loop) run.setting.rate = 2;
  run.started_at_unix_s = 1'700'000'000.25;
  run.duration = 2s;
  run.unanswered = 1;
  Interval& total = *run.total;
  total.begin = core::TimePoint{} + 1h;
  total.end = total.begin + 2s;
  total.sent = 4;
  total.answered = 3;
  total.valid = 2;
  total.tx_bytes = (std::uint64_t{4} << 30) + 4 * protocol::kFrameHeaderSize;
  total.rx_bytes = (std::uint64_t{3} << 30) + 3 * protocol::kFrameHeaderSize;
  total.errors.add(ErrorKind::mismatch);
  for (const auto latency : {100us, 1000us}) {
    total.service.record(latency);
    if (open_loop) total.response.record(latency + 500us);
  }
  total.connect.record(70us);
  results::RunInterval second;
  second.start_s = 0.5;
  second.length_s = 1;
  second.operations = 3;
  second.valid = 2;
  second.errors = 1;
  second.in_flight = 1.5;
  second.service_time_us = results::IntervalLatency::of(total.service);
  second.response_time_us = results::IntervalLatency::of(total.response);
  run.seconds.push_back(second);
  run.verdict = {open_loop ? LoadVerdict::Code::kept_up : LoadVerdict::Code::closed_loop, "fine"};
  run.faults.emplace_back("thread 0, request 1: ...");
  return run;
}

inline Campaign sample_campaign(bool open_loop) {
  Campaign campaign;
  campaign.runs.push_back(sample_run(open_loop));
  return campaign;
}

}  // namespace offload::client
