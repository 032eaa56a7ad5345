#include "tests/simulation/scene.hpp"

#include <fmt/core.h>

#include <array>
#include <csignal>
#include <exception>

#include "apps/server/server.hpp"
#include "core/signals.hpp"
#include "tests/simulation/kernel/stores.hpp"
#include "tests/simulation/world.hpp"

namespace offload::simulation {
namespace {

constexpr std::uint16_t kPort = 12345;
constexpr const char* kComch = "unix:/sim/comch.sock";
constexpr const char* kComchOverTcp = "tcp:127.0.0.1:5000";

server::Options draw_server(Random& random) {
  constexpr std::array<std::uint32_t, 5> kLengths{64, 256, 372, 2000, 70000};
  server::Options options;
  options.max_message_length = kLengths[random.below(kLengths.size())];
  const bool over_tcp = random.one_in(3);  // with the proxies, and without TLS
  options.comch = over_tcp ? kComchOverTcp : kComch;
  options.comch_security.insecure = over_tcp;
  options.listen_port = kPort;
  options.listens = {{kPort, "reverse"}};
  options.threads = static_cast<std::uint32_t>(1 + random.below(3));
  options.max_concurrent_messages = 1U << random.below(8);
  options.worker_timeout = core::seconds(2);
  options.clients.frame_timeout = core::seconds(5);
  return options;
}

void run_server(const server::Options& options) {
  try {
    core::Signals signals(core::Hangup::rereads);
    server::Server(options, signals).run();
  } catch (const std::exception& error) {
    kernel->fail(std::string("the server ends: ") + error.what());
  }
}

}  // namespace

worker::Options worker_options(const server::Options& server) {
  worker::Options options;
  options.comch = server.comch;
  options.comch_security.insecure = server.comch_security.insecure;
  options.backend = "cpu";
  return options;
}

Scene::Scene(Kernel& world, unsigned which)
    : kernel(world),
      faults(which),
      server(draw_server(world.random)),
      fleet(worker_options(server)),
      clients("tcp:" + std::to_string(kPort)) {
  Random& random = world.random;
  world.clients_port = kPort;
  world.longest_delay =
      static_cast<Time>(1 + random.below(random.one_in(3) ? 20 : 2)) * kMillisecond;
  world.split_one_in = (faults & kSplits) != 0 ? 1 + random.below(8) : 0;
  world.socket_room = random.one_in(3) ? 1 + random.below(8000) : 64 * 1024;
  world.socket_room = std::max<std::size_t>(world.socket_room, 4096);
  world.preempt_one_in = 1 + random.below(8);
  draw_tight();
  if ((faults & kStores) != 0) {
    trap_stores();
    // A trap for each word of a copy takes long.
    server.max_message_length = std::min(server.max_message_length, 372U);
  }
  load.longest = server.max_message_length;
  load.fleet = &fleet;
  load.may_be_reset = (faults & kResets) != 0;
  set_arguments(2 * kSecond, "30");
}

/// Selects a tight bound, which decides the message lengths: honest clients never come near the
/// bound.
void Scene::draw_tight() {
  if ((faults & kCrowds) == 0) return;
  constexpr std::array<std::uint32_t, 3> kShort{64, 256, 372};
  tight = static_cast<Tight>(kernel.random.below(kernel.random.one_in(2) ? 8 : 1));
  switch (tight) {
    case Tight::nothing: return;
    case Tight::memory:
      server.clients.memory = 1 << 20;
      server.threads = 1;  // whose share is more than a few buffers
      server.max_message_length = kShort.back();
      server.max_concurrent_messages = 128;
      load.most_window = 40;
      return;
    case Tight::long_memory:
      server.clients.memory = 6 << 20;
      server.max_message_length = 70000;
      load.most_window = 2;
      return;
    case Tight::idle_time: server.clients.idle_timeout = core::seconds(3); return;
    case Tight::output_time:
      server.clients.output_timeout = core::seconds(3);
      server.max_message_length = kShort[kernel.random.below(kShort.size())];
      return;
    case Tight::clients:
      server.clients.connections = 20;
      server.clients.per_address = 1000;
      return;
    case Tight::of_an_address:
      server.clients.connections = 1000;
      server.clients.per_address = 12;
      return;
    case Tight::descriptors:
      server.comch = kComchOverTcp;
      server.comch_security.insecure = true;
      fleet = Fleet(worker_options(server));
      return;
  }
}

void Scene::set_arguments(Time worker_timeout, const std::string& request_timeout) {
  arguments_ = {"offload-server", "--log-level=critical",
                fmt::format("--worker-timeout={}ms", worker_timeout / kMillisecond),
                "--request-timeout=" + request_timeout};
  pointers_.clear();
  for (const std::string& argument : arguments_) pointers_.push_back(argument.c_str());
  server.configuration.argument_count = static_cast<int>(pointers_.size());
  server.configuration.arguments = pointers_.data();
}

void Scene::start_server() {
  set_arguments(2 * kSecond, "30");
  fleet.worker_timeout = 2 * kSecond;
  fleet.request_timeout = 30 * kSecond;
  process = &kernel.start("server", [options = server] { run_server(options); });
  if (tight == Tight::descriptors) process->most_fds = 300;
  fleet.note_new_server();
  down_since = 0;
}

void Scene::pause(Time time, bool with_workers) {
  std::vector<Process*> paused{process};
  for (Fleet::Worker* const worker : fleet.running()) {
    if (with_workers && !worker->process->frozen) paused.push_back(worker->process);
  }
  for (Process* const each : paused) kernel.freeze(*each);
  fleet.note_pause();
  kernel.at(kernel.now + time, [this, paused, with_workers] {
    for (Process* const each : paused) kernel.thaw(*each);
    fleet.note_return(with_workers);
  });
}

void Scene::kill_server() {
  down_since = kernel.now;
  load.server_gone_at = kernel.now;
  kernel.kill(*process);
}

bool Scene::end_server(Time limit) {
  down_since = kernel.now;
  load.server_ends_at = kernel.now;
  for (const auto& other : kernel.processes) {
    if (!other->name.starts_with("client")) continue;
    for (const auto& [fd, file] : other->fds) {
      if (const auto socket = std::dynamic_pointer_cast<Socket>(file)) socket->mark();
    }
  }
  kernel.signal(*process, SIGTERM);
  return await([&] { return kernel.ended(*process); }, limit);
}

void Scene::reload(Time worker_timeout, const std::string& request_timeout) {
  set_arguments(worker_timeout, request_timeout);
  kernel.signal(*process, SIGHUP);
  kernel.sleep(100 * kMillisecond);
}

bool Scene::serves() const {
  return accepts_clients(*process);
}

bool Scene::await(const std::function<bool()>& holds, Time limit) {
  const Time deadline = kernel.now + limit;
  while (!holds() && kernel.now < deadline) kernel.sleep(kMillisecond);
  return holds();
}

bool Scene::await_service() {
  if (await([&] { return serves(); }, 60 * kSecond)) return true;
  fail("the server does not serve");
  return false;
}

Fleet::Worker& Scene::one_worker() {
  Fleet::Worker* kept = nullptr;
  for (Fleet::Worker* const worker : fleet.running()) {
    fleet.thaw(*worker);
    const bool stays = kept == nullptr && worker->may_serve && !worker->stands_by;
    if (stays) {
      kept = worker;
    } else {
      fleet.kill(*worker);
    }
  }
  if (kept == nullptr) kept = &fleet.start(false);
  kernel.sleep(Fleet::kSettle + 500 * kMillisecond);
  return *kept;
}

Fleet::Worker& Scene::one_more(bool stands_by, bool replaces) {
  Fleet::Worker& worker = fleet.start(stands_by, replaces);
  kernel.sleep(Fleet::kSettle);
  return worker;
}

bool Scene::answers(Time limit, std::uint64_t count) {
  Peer peer(clients);
  peer.ask(count, length());
  const Time deadline = kernel.now + limit;
  for (; count != 0; --count) {
    if (!peer.is_answered(deadline - kernel.now)) return false;
  }
  return true;
}

}  // namespace offload::simulation
