/// A sample: two processes exchange counts through two sync events. The second process receives
/// both over a Unix socket, as an unrelated process would, and sleeps while it waits.
#include <fmt/core.h>

#include <array>

#include "apps/samples/second_process.hpp"
#include "core/error.hpp"
#include "core/exit_status.hpp"
#include "net/fd_passing.hpp"
#include "tasks/sync/sync_event.hpp"

namespace {

using namespace offload;

constexpr const char* kName = "sample-sync-event-processes";
constexpr std::uint64_t kRounds = 1000;
constexpr core::Duration kPatience = std::chrono::seconds(10);

void send(int socket, const sync::SyncEvent& event) {
  const auto exported = event.export_to_process();
  net::send_with_fds(socket, exported.blob, std::array{exported.fd});
}

sync::SyncEvent receive(int socket) {
  std::array<std::byte, 64> blob;
  auto message = net::receive_with_fds(socket, blob);
  if (!message || message->fds.size() != 1) {
    throw core::Error(core::ErrorCode::bad_message, "no sync event arrived");
  }
  return sync::SyncEvent::import(std::span(blob).first(message->size),
                                 std::move(message->fds.front()));
}

/// Waits until the other process has counted beyond `count`.
void await(sync::SyncEvent& event, std::uint64_t count) {
  if (!event.wait_greater(count, sync::WaitMode::block, kPatience)) {
    throw core::Error(core::ErrorCode::timed_out, "the other process stopped counting");
  }
}

void first_process(sync::SyncEvent& ping, sync::SyncEvent& pong) {
  const auto start = core::Clock::now();
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    ping.add(1);
    await(pong, round);
  }
  const auto time = core::Clock::now() - start;
  fmt::print("{} round trips, {:.1f} us each\n", pong.get(),
             1e6 * core::to_seconds(time) / static_cast<double>(kRounds));
}

void second_process(int socket) {
  sync::SyncEvent ping = receive(socket);
  sync::SyncEvent pong = receive(socket);
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    await(ping, round);
    pong.add(1);
  }
}

int run() {
  const samples::SecondProcess second(kName, second_process);
  sync::SyncEvent ping({.name = "ping"});
  sync::SyncEvent pong({.name = "pong"});
  send(second.socket(), ping);
  send(second.socket(), pong);
  first_process(ping, pong);
  second.wait();
  return 0;
}

}  // namespace

int main() {
  return core::exit_status_of(kName, run);
}
