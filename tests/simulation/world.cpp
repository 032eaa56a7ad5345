#include "tests/simulation/world.hpp"

#include <fmt/core.h>

#include "core/log.hpp"
#include "tests/simulation/client.hpp"
#include "tests/simulation/kernel/files.hpp"
#include "tests/simulation/kernel/shortages.hpp"
#include "tests/simulation/kernel/stores.hpp"
#include "tests/simulation/scene.hpp"
#include "tests/simulation/trials.hpp"
#include "tests/simulation/watch.hpp"

namespace offload::simulation {
namespace {

constexpr Time kLongest = 900 * kSecond;

/// Runs a scene's programs under load, applies the faults of the seed, runs single trials, and
/// checks what is left.
class Director {
 public:
  Director(Kernel& world, const Plan& plan)
      : scene_(world, plan.faults), kernel_(world), plan_(plan) {}

  void run() {
    if ((plan_.faults & kShortages) != 0) begin_shortages(kernel_, 50 + kernel_.random.below(200));
    scene_.start_server();
    const std::uint64_t count = 1 + kernel_.random.below(3);
    for (std::uint64_t i = 0; i < count; ++i) {
      scene_.fleet.start(i != 0 && kernel_.random.one_in(2));
    }
    if (!scene_.await_service()) return;
    if ((plan_.faults & kStores) != 0 && (plan_.faults & kKills) != 0) {
      kill_at_stores(500 + kernel_.random.below(5000),
                     [this](Process& process) { scene_.fleet.kill(process); });
    }
    kernel_.start("watcher", [this] { watch_over(scene_); });
    if (!kernel_.random.one_in(3)) kernel_.sleep(Fleet::kSettle);
    put_under_load();
    if ((plan_.faults & kTrials) != 0) try_out();
    if (!kernel_.failures.empty()) return;
    look_at_quiet(scene_);
    end();
  }

  Scene scene_;

 private:
  void put_under_load() {
    const std::uint64_t clients =
        std::min<std::uint64_t>(1 + kernel_.random.below(6), plan_.most_clients);
    for (std::uint64_t i = 0; i < clients; ++i) start_client();
    while (scene_.load.running != 0) {
      kernel_.sleep(static_cast<Time>(1 + kernel_.random.below(10 * kMillisecond)));
      if (kernel_.random.one_in(3) && disturbances_ < plan_.most_disturbances) disturb();
      look_after();
    }
    scene_.await([this] { return !scene_.fleet.is_paused(); }, 20 * kSecond);
    for (const auto& worker : scene_.fleet.all()) scene_.fleet.thaw(*worker);
    scene_.await_address();
    if (!kernel_.ended(*scene_.process)) return;
    scene_.start_server();
    if (!scene_.fleet.serves()) scene_.fleet.start(false);
    scene_.await_service();
  }
  void start_client() {
    Load& load = scene_.load;
    ++load.running;
    const bool lies = (plan_.faults & kLies) != 0 && kernel_.random.one_in(5);
    kernel_.start("client", [&load, lies] { run_client(load, 12345, lies); });
    kernel_.sleep(static_cast<Time>(kernel_.random.below(5 * kMillisecond)));
  }

  /// Causes one fault, of the kinds that are allowed.
  void disturb() {
    Random& random = kernel_.random;
    const std::uint64_t drawn = random.below((plan_.faults & kPauses) != 0 ? 10 : 9);
    const unsigned kind = drawn == 9 ? kPauses : 1U << drawn;
    if ((kind & plan_.faults) == 0) return;
    ++disturbances_;
    if (kind == kResets) return reset_a_client();
    if (kind == kStrangers && random.one_in(4)) {
      kernel_.start("stranger", [this] { bother(scene_.server.comch); });
    }
    const bool is_up = scene_.down_since == 0 && !scene_.fleet.is_paused();
    if (kind == kServers && is_up && random.one_in(12)) end_the_server();
    if (kind == kPauses && is_up && random.one_in(4)) {
      const auto time = static_cast<Time>(random.below(random.one_in(2) ? 15'000 : 1500));
      return scene_.pause(time * kMillisecond, random.one_in(2));
    }
    if (kind == kReplaces && random.one_in(6) && scene_.fleet.running().size() < 6) {
      // The server decides which one is replaced.
      for (Fleet::Worker* const worker : scene_.fleet.running())
        scene_.fleet.note_replaced(*worker);
      scene_.fleet.start(false, true);
    }
    const auto there = scene_.fleet.running();
    if (there.empty()) return;
    Fleet::Worker& worker = *there[random.below(there.size())];
    const bool is_told = !worker.process->signals.empty();
    if (kind == kKills) scene_.fleet.kill(worker);
    if (kind == kLeaves && !is_told && !worker.process->frozen) scene_.fleet.tell_to_leave(worker);
    if (kind == kFreezes && !worker.process->frozen) {
      scene_.fleet.freeze(worker);
      const auto time =
          static_cast<Time>(random.below(random.one_in(4) ? 12'000 : 50)) * kMillisecond;
      kernel_.at(kernel_.now + time, [this, &worker] { scene_.fleet.thaw(worker); });
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
  /// Kills or drains the server; another one starts later.
  void end_the_server() {
    if (kernel_.random.one_in(2)) return scene_.kill_server();
    if (!scene_.end_server(20 * kSecond)) scene_.fail("under load the server does not end");
  }
  /// Acts like a supervisor: if all have ended, it starts one again after a while.
  void look_after() {
    if (scene_.down_since != 0) {
      if (!kernel_.random.one_in(8)) return;
      scene_.start_server();
      if (!scene_.fleet.serves()) scene_.fleet.start(false);
      scene_.await_service();
      for (std::uint64_t i = 1 + kernel_.random.below(3); i != 0; --i) start_client();
    }
    if (scene_.fleet.running().empty() && kernel_.random.one_in(8)) scene_.fleet.start(false);
  }

  void try_out() {
    for (std::uint64_t i = 1 + kernel_.random.below(2); i != 0; --i) try_one();
    scene_.one_worker();
    try_bound(scene_);
  }
  void try_one() {
    std::vector<const Trial*> trials;
    const auto add = [&](const std::vector<Trial>& some, unsigned kind) {
      if ((plan_.faults & kind) == 0) return;
      for (const Trial& trial : some) trials.push_back(&trial);
    };
    add(kWorkerTrials, kTrials);
    add(kServerTrials, kServers);
    add(kClientTrials, kLies);
    add(kStrangerTrials, kStrangers);
    const Trial& trial = *trials[kernel_.random.below(trials.size())];
    scene_.one_worker();
    if (!kernel_.failures.empty()) return;
    kernel_.note(trial.name);
    trial.run(scene_);
  }

  void end() {
    scene_.down_since = kernel_.now;
    if (!scene_.end_server(20 * kSecond)) return kernel_.fail("the server does not end");
    for (Fleet::Worker* const worker : scene_.fleet.running()) scene_.fleet.tell_to_leave(*worker);
    for (const auto& worker : scene_.fleet.all()) {
      if (scene_.await([&] { return kernel_.ended(*worker->process); }, 20 * kSecond)) continue;
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
  Plan plan_;
  std::uint64_t disturbances_ = 0;
};

}  // namespace

Outcome simulate(std::uint64_t seed, const Plan& plan) {
  core::set_log_level("off");  // a line reads the clock, which the trace would show
  static Kernel world(seed);
  kernel = &world;
  world.traces = plan.traces;
  static Director director(world, plan);
  world.start("director", [] { director.run(); });
  const Time began = world.now;
  world.run(began + kLongest);
  if (!world.over && world.failures.empty()) world.fail("nothing goes on, or it takes too long");
  return {world.hash,
          world.steps,
          director.scene_.load.answered,
          director.scene_.load.refused,
          world.now - began,
          std::move(world.failures)};
}

}  // namespace offload::simulation
