/// A sample, of two programs: the DPU takes a sync event from the host (host.cpp) over the control
/// channel, and both signal each other by it.
#include <fmt/core.h>
#include <poll.h>

#include <cstdio>

#include "apps/samples/sync_event/exchange.hpp"
#include "comch/transport/transport.hpp"
#include "core/error.hpp"

namespace {

using namespace offload;

constexpr const char* kName = "sample-sync-event-dpu";

std::unique_ptr<comch::ControlConnection> accept(comch::Listener& listener) {
  const auto deadline = core::Clock::now() + samples::kPatience;
  while (core::Clock::now() < deadline) {
    if (auto connection = listener.accept()) return connection;
    pollfd watched{listener.fd(), POLLIN, 0};
    ::poll(&watched, 1, 100);
  }
  throw core::Error(core::ErrorCode::timed_out, "no host connected in time");
}

sync::SyncEvent receive(comch::ControlConnection& connection) {
  auto message = connection.await();
  const auto blob = protocol::UserMessage::decode(message.payload);
  if (message.id != protocol::MessageId::user_message || !blob || message.fds.size() != 1) {
    throw core::Error(core::ErrorCode::bad_message, "the host's first message is not a sync event");
  }
  return sync::SyncEvent::import(blob->bytes, std::move(message.fds.front()));
}

void run(const samples::SyncEventOptions& options) {
  const auto address = comch::Address::parse(options.comch);
  const auto listener = comch::transport_of(address.scheme).listen(address);
  fmt::print("waiting for the host on {}\n", listener->address().to_string());
  (void)std::fflush(stdout);  // for a reader of a pipe
  const auto connection = accept(*listener);
  sync::SyncEvent event = receive(*connection);
  samples::exchange_signals(event, samples::ExchangeSide::dpu, options);
  fmt::print("{} signals received, {} sent\n", (event.get() + 1) / 2, event.get() / 2);
}

}  // namespace

int main(int argc, char** argv) {
  return samples::sync_event_sample(
      kName, "Receives a sync event from sample-sync-event-host, and exchanges signals with it.",
      argc, argv, run);
}
