/// A sample, of two programs: the host makes a sync event and sends it to the DPU over the control
/// channel; both signal each other by it. Start sample-sync-event-dpu first.
#include <fmt/core.h>

#include <array>

#include "apps/samples/sync_event/exchange.hpp"
#include "comch/transport/transport.hpp"
#include "core/error.hpp"

namespace {

using namespace offload;

constexpr const char* kName = "sample-sync-event-host";

/// The blob goes as a message of the application, the memory's descriptor beside it.
void send(comch::ControlConnection& connection, const sync::SyncEvent& event) {
  auto* const local = dynamic_cast<comch::LocalControlConnection*>(&connection);
  if (local == nullptr) {
    throw core::Error(core::ErrorCode::not_supported,
                      "a sync event stays on this machine: use --comch unix:PATH");
  }
  const auto exported = event.export_to_process();
  local->send_with_fds(protocol::MessageId::user_message,
                       protocol::UserMessage{0, exported.blob}.encode(), std::array{exported.fd});
}

void run(const samples::SyncEventOptions& options) {
  const auto address = comch::Address::parse(options.comch);
  const auto connection = comch::transport_of(address.scheme).connect(address);
  sync::SyncEvent event({});
  send(*connection, event);

  const auto start = core::Clock::now();
  samples::exchange_signals(event, samples::ExchangeSide::host, options);
  const double seconds = core::to_seconds(core::Clock::now() - start);
  fmt::print("{} round trips, {:.1f} us each\n", event.get() / 2,
             1e6 * seconds / static_cast<double>(samples::kRounds));
}

}  // namespace

int main(int argc, char** argv) {
  return samples::sync_event_sample(
      kName, "Makes a sync event, sends it to sample-sync-event-dpu, and exchanges signals.", argc,
      argv, run);
}
