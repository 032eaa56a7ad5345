#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "apps/server/client_table.hpp"
#include "apps/server/view/thread_metrics.hpp"
#include "channel/requester.hpp"
#include "core/clock.hpp"
#include "core/log.hpp"
#include "protocol/frame.hpp"

namespace offload::server {

/// The log of requests of one I/O thread that took at least --slow-request, from the arrival of
/// their last bytes until their response was given to the socket. One thread.
class SlowRequests {
 public:
  /// Most lines logged in a second.
  static constexpr std::uint32_t kMostLines = 10;

  /// `metrics` outlives it.
  SlowRequests(std::string service, core::Duration limit, ThreadMetrics& metrics)
      : service_(std::move(service)), limit_(limit), metrics_(&metrics) {}

  /// 0: no request is slow. Requests that arrived before it was switched on are not reported.
  void set_limit(core::Duration limit, core::TimePoint now) noexcept {
    if (limit_ == core::Duration{}) since_ = now;
    limit_ = limit;
  }
  /// Returns whether arrivals must be noted.
  [[nodiscard]] bool is_on() const noexcept { return limit_ != core::Duration{}; }
  /// `arrived` of a request that was posted while this was off means nothing.
  [[nodiscard]] bool is_slow(core::TimePoint arrived, core::TimePoint now) const noexcept {
    return now - arrived >= limit_ && arrived >= since_ && is_on();
  }

  /// Reports those of the responses of `task`, which were seen and sent at these times, that are
  /// slow.
  void note_sent(const channel::Requester& requester, const channel::PostRecvTask& task,
                 core::TimePoint seen, core::TimePoint sent) noexcept {
    const auto& first = requester.request(task.sequence() + 1 - task.count());
    // The requests of a client are answered in the order in which they arrived.
    if (sent - first.arrived >= limit_) find(requester, task, seen, sent);
  }
  /// Reports a slow request that gets an error instead of a response. `waited_us`: until it was in
  /// the channel.
  void note_refused(const Client& client, core::TimePoint arrived, std::uint32_t waited_us,
                    std::size_t length, protocol::Refusal reason, core::TimePoint now) noexcept;

 private:
  [[nodiscard]] std::optional<std::uint64_t> count(const Client& client, core::Duration took,
                                                   core::TimePoint now) noexcept;
  void find(const channel::Requester& requester, const channel::PostRecvTask& task,
            core::TimePoint seen, core::TimePoint sent) noexcept;

  std::string service_;
  core::Duration limit_;
  ThreadMetrics* metrics_;
  core::TimePoint since_{};
  core::RateLimit log_{kMostLines};
};

}  // namespace offload::server
