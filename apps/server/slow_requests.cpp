#include "apps/server/slow_requests.hpp"

#include <algorithm>
#include <chrono>
#include <span>

namespace offload::server {
namespace {

double to_millis(core::Duration duration) {
  return 1e3 * core::to_seconds(duration);
}

/// Returns the part of `whole` that a request waited until it was posted.
core::Duration waited(std::uint32_t microseconds, core::Duration whole) {
  return std::min<core::Duration>(std::chrono::microseconds(microseconds), whole);
}

}  // namespace

/// Counts a slow request. Returns its number among those of this thread if the caller must log it.
/// Then it is an exemplar too, so that every exemplar leads to a line of the log.
std::optional<std::uint64_t> SlowRequests::count(const Client& client, core::Duration took,
                                                 core::TimePoint now) noexcept {
  metrics_->slow_requests.add();
  if (!log_.allow(now)) return std::nullopt;
  const std::uint64_t number = metrics_->slow_requests.value();
  const auto length = static_cast<std::uint64_t>(took.count());
  const auto ended = std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch());
  metrics_->last_slow[telemetry::DurationHistogram::bucket_of(length)].add(
      {length, client.admission().number, number, static_cast<std::uint64_t>(ended.count())});
  return number;
}

void SlowRequests::find(const channel::Requester& requester, const channel::PostRecvTask& task,
                        core::TimePoint seen, core::TimePoint sent) noexcept {
  if (task.user_data == nullptr) return;  // its client has had an error
  const auto& client = *static_cast<const Client*>(task.user_data);
  if (client.connection().state() == ClientConnection::State::closed) return;  // nothing was sent
  const auto address = client.admission().address.text();
  std::span<const std::byte> frames = task.frame();
  const std::uint64_t end = task.sequence() + 1;
  for (std::uint64_t i = end - task.count(); i != end; ++i) {
    std::size_t length = task.payload().size();
    if (frames.size() >= protocol::kFrameHeaderSize) {
      const auto header = protocol::FrameHeader::load(frames.data());
      length = header.length;
      frames = frames.subspan(std::min<std::size_t>(header.wire_size, frames.size()));
    }
    const channel::RequestTask& request = requester.request(i);
    if (!is_slow(request.arrived, sent)) continue;
    if (task.response_status() != kernels::ResponseStatus::ok) {
      note_refused(client, request.arrived, request.waited_us, request.length(),
                   protocol::Refusal::worker_failed, sent);
      continue;
    }
    const auto number = count(client, sent - request.arrived, sent);
    if (!number) continue;
    const core::Duration until_seen = std::max(seen - request.arrived, core::Duration{});
    const core::Duration before = waited(request.waited_us, until_seen);
    core::log_warning(
        "client {}, {}: slow request {}, of {} bytes for {}, took {:.3f} ms until its response of "
        "{} bytes was sent: {:.3f} ms until it was in the channel, {:.3f} ms in channel and "
        "worker, {:.3f} ms until the response was sent ({} more were not logged)",
        client.admission().number, std::string_view(address), *number, request.length(), service_,
        to_millis(sent - request.arrived), length, to_millis(before),
        to_millis(until_seen - before), to_millis(sent - request.arrived - until_seen),
        log_.suppressed());
  }
}

void SlowRequests::note_refused(const Client& client, core::TimePoint arrived,
                                std::uint32_t waited_us, std::size_t length,
                                protocol::Refusal reason, core::TimePoint now) noexcept {
  if (!is_slow(arrived, now)) return;
  const auto number = count(client, now - arrived, now);
  if (!number) return;
  const auto address = client.admission().address.text();
  const core::Duration before = waited(waited_us, now - arrived);
  core::log_warning(
      "client {}, {}: slow request {}, of {} bytes for {}, took {:.3f} ms until its error {}: "
      "{:.3f} ms until it was in the channel, {:.3f} ms in channel and worker ({} more were not "
      "logged)",
      client.admission().number, std::string_view(address), *number, length, service_,
      to_millis(now - arrived), protocol::name_of(reason), to_millis(before),
      to_millis(now - arrived - before), log_.suppressed());
}

}  // namespace offload::server
