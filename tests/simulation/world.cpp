#include "tests/simulation/world.hpp"

#include <fmt/core.h>

#include <array>
#include <csignal>
#include <exception>

#include "apps/server/server.hpp"
#include "apps/worker/program.hpp"
#include "core/log.hpp"
#include "tests/simulation/client.hpp"
#include "tests/simulation/kernel/files.hpp"
#include "tests/simulation/kernel/shortages.hpp"
#include "tests/simulation/kernel/stores.hpp"

namespace offload::simulation {
namespace {

constexpr std::uint16_t kPort = 12345;
constexpr const char* kComch = "unix:/sim/comch.sock";
constexpr const char* kComchOverTcp = "tcp:127.0.0.1:5000";
constexpr Time kLongest = 400 * kSecond;
/// In 5 quiet seconds a thread looks at its descriptors so often at most.
constexpr std::uint64_t kQuietTurns = 500;

/// Draws a world, runs programs in it, does to them what the seed says, and looks what is left.
class Director {
 public:
  Director(Kernel& world, unsigned faults) : kernel_(world), faults_(faults) {
    Random& random = world.random;
    world.clients_port = kPort;
    world.longest_delay =
        static_cast<Time>(1 + random.below(random.one_in(3) ? 20 : 2)) * kMillisecond;
    world.split_one_in = (faults & kSplits) != 0 ? 1 + random.below(8) : 0;
    world.socket_room = random.one_in(3) ? 1 + random.below(8000) : 64 * 1024;
    world.socket_room = std::max<std::size_t>(world.socket_room, 4096);
    world.preempt_one_in = 1 + random.below(8);
    constexpr std::array<std::uint32_t, 5> kLengths{64, 256, 372, 2000, 70000};
    load_.longest = kLengths[random.below(kLengths.size())];
    if ((faults & kStores) != 0) {
      trap_stores();
      load_.longest = std::min(load_.longest, 372U);  // a trap for each word of a copy takes long
    }
    const bool over_tcp = random.one_in(3);  // with the proxies, and without TLS
    server_.comch = worker_.comch = over_tcp ? kComchOverTcp : kComch;
    server_.comch_security.insecure = worker_.comch_security.insecure = over_tcp;
    server_.listen_port = kPort;
    server_.listens = {{kPort, "reverse"}};
    server_.threads = static_cast<std::uint32_t>(1 + random.below(3));
    server_.max_concurrent_messages = 1U << random.below(8);
    server_.max_message_length = load_.longest;
    server_.worker_timeout = core::seconds(2);
    worker_.backend = "cpu";
    load_.may_be_refused = (faults & (kKills | kFreezes | kLeaves)) != 0;
    load_.may_be_reset = (faults & kResets) != 0;
    if ((faults & kShortages) != 0) begin_shortages(world, 50 + random.below(200));
  }

  void run() {
    Process& server = kernel_.start("server", [this] { run_server(); });
    start_workers();
    if (!await([&] { return serves(); }, 60)) return kernel_.fail("the server does not serve");
    if ((faults_ & kStores) != 0 && (faults_ & kKills) != 0) {
      kill_at_stores(500 + kernel_.random.below(5000));
    }
    const std::uint64_t clients = 1 + kernel_.random.below(6);
    for (std::uint64_t i = 0; i < clients; ++i) {
      ++load_.running;
      const bool lies = (faults_ & kLies) != 0 && kernel_.random.one_in(5);
      kernel_.start("client", [this, lies] { run_client(load_, kPort, lies); });
      kernel_.sleep(static_cast<Time>(kernel_.random.below(5 * kMillisecond)));
    }
    while (load_.running != 0) {
      kernel_.sleep(static_cast<Time>(1 + kernel_.random.below(10 * kMillisecond)));
      if (kernel_.random.one_in(3)) disturb();
      look_after_workers();
    }
    for (Process* const worker : workers_) worker->frozen = false;
    look_at_quiet();
    end(server);
  }

  Load load_;

 private:
  void run_server() {
    try {
      core::Signals signals(core::Hangup::rereads);
      server::Server(server_, signals).run();
    } catch (const std::exception& error) {
      kernel_.fail(std::string("the server ends: ") + error.what());
    }
  }
  void run_worker(worker::Options options) {
    try {
      core::Signals signals(core::Hangup::rereads);
      worker::Program(options, signals).run();
    } catch (const std::exception& error) {
      kernel_.fail(std::string("a worker ends: ") + error.what());
    }
  }

  void start_workers() {
    const std::uint64_t count = 1 + kernel_.random.below(3);
    for (std::uint64_t i = 0; i < count; ++i) start_worker(i != 0 && kernel_.random.one_in(2));
  }
  void start_worker(bool stands_by) {
    worker::Options options = worker_;
    options.stands_by = stands_by;
    workers_.push_back(&kernel_.start("worker", [this, options] { run_worker(options); }));
  }

  bool await(const std::function<bool()>& holds, Time seconds) {
    const Time deadline = kernel_.now + seconds * kSecond;
    while (!holds() && kernel_.now < deadline) kernel_.sleep(kMillisecond);
    return holds();
  }
  [[nodiscard]] bool serves() const {
    const auto found = kernel_.names.find("port " + std::to_string(kPort));
    if (found == kernel_.names.end()) return false;
    const auto listener = std::dynamic_pointer_cast<Listener>(found->second.lock());
    return listener && listener->listens;
  }

  /// One fault, of the kinds that are allowed.
  void disturb() {
    Random& random = kernel_.random;
    const auto kind = static_cast<unsigned>(1U << random.below(6));
    if ((kind & faults_) == 0) return;
    if (kind == kResets) return reset_a_client();
    std::vector<Process*> there;
    for (Process* const worker : workers_) {
      if (!kernel_.ended(*worker)) there.push_back(worker);
    }
    if (there.empty()) return;
    Process& worker = *there[random.below(there.size())];
    if (kind == kKills) kernel_.kill(worker);
    if (kind == kLeaves && worker.signals.empty() && !worker.frozen)
      kernel_.signal(worker, SIGTERM);
    if (kind == kFreezes && !worker.frozen) {
      kernel_.note("freeze", static_cast<std::uint64_t>(worker.pid));
      worker.frozen = true;
      const auto time =
          static_cast<Time>(random.below(random.one_in(4) ? 12'000 : 50)) * kMillisecond;
      kernel_.at(kernel_.now + time, [&worker] { worker.frozen = false; });
    }
  }
  void reset_a_client() {
    std::vector<std::shared_ptr<Socket>> sockets;
    for (const auto& process : kernel_.processes) {
      if (!process->name.starts_with("client")) continue;
      for (const auto& [fd, file] : process->fds) {
        if (auto socket = std::dynamic_pointer_cast<Socket>(file))
          sockets.push_back(std::move(socket));
      }
    }
    if (sockets.empty()) return;
    const auto socket = sockets[kernel_.random.below(sockets.size())];
    kernel_.note("reset");
    if (const auto other = socket->peer.lock()) other->reset(ECONNRESET);
    socket->reset(ECONNRESET);
  }
  /// As a supervisor: where all have ended, one is started again after a while.
  void look_after_workers() {
    std::size_t there = 0;
    for (Process* const worker : workers_) there += kernel_.ended(*worker) ? 0U : 1U;
    if (there == 0 && kernel_.random.one_in(8)) start_worker(false);
  }

  void look_at_quiet() {
    kernel_.sleep(3 * kSecond);
    std::vector<std::uint64_t> before;
    for (const auto& fiber : kernel_.fibers) before.push_back(fiber->sleeps);
    kernel_.sleep(5 * kSecond);
    for (std::size_t i = 0; i < before.size(); ++i) {
      const Fiber& fiber = *kernel_.fibers[i];
      if (fiber.sleeps - before[i] <= kQuietTurns) continue;
      kernel_.fail(fmt::format("{} {} turns {} times in 5 quiet seconds", fiber.process->name,
                               fiber.name, fiber.sleeps - before[i]));
    }
  }

  void end(Process& server) {
    kernel_.signal(server, SIGTERM);
    if (!await([&] { return kernel_.ended(server); }, 20))
      return kernel_.fail("the server does not end");
    for (Process* const worker : workers_) {
      if (!kernel_.ended(*worker)) kernel_.signal(*worker, SIGTERM);
    }
    for (Process* const worker : workers_) {
      if (await([&] { return kernel_.ended(*worker); }, 20)) continue;
      return kernel_.fail("a worker does not end");
    }
    for (const auto& process : kernel_.processes) {
      if (process->name.starts_with("director") || process->fds.empty()) continue;
      kernel_.fail(
          fmt::format("{} leaves {} descriptors open", process->name, process->fds.size()));
    }
    kernel_.over = true;
  }

  Kernel& kernel_;
  unsigned faults_;
  server::Options server_;
  worker::Options worker_;
  std::vector<Process*> workers_;
};

}  // namespace

Outcome simulate(std::uint64_t seed, unsigned faults, bool traces) {
  core::set_log_level(traces ? "debug" : "critical");
  static Kernel world(seed);
  kernel = &world;
  world.traces = traces;
  static Director director(world, faults);
  world.start("director", [] { director.run(); });
  const Time began = world.now;
  world.run(began + kLongest);
  if (!world.over && world.failures.empty()) world.fail("nothing goes on, or it takes too long");
  return {world.hash,
          world.steps,
          director.load_.answered,
          director.load_.refused,
          world.now - began,
          std::move(world.failures)};
}

}  // namespace offload::simulation
