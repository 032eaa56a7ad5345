#include "tests/simulation/watch.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>

namespace offload::simulation {
namespace {

/// The maximum number of polls of its descriptors that a thread may make in 5 quiet seconds.
constexpr std::uint64_t kQuietTurns = 500;
/// The maximum in a second with load, besides the cost of each event: it spins for 50 us after
/// work.
constexpr std::uint64_t kTurns = 4000;
constexpr std::uint64_t kTurnsAnEvent = 200;
/// The maximum of a server: epoll, signals, listeners and the lock; of each thread; and of each
/// channel of an attached or new worker.
constexpr std::size_t kDescriptors = 16;
constexpr std::size_t kDescriptorsAThread = 4;
constexpr std::size_t kDescriptorsAChannel = 12;

std::size_t sockets_of_others(const Scene& s) {
  std::size_t count = 0;
  for (const auto& other : s.kernel.processes) {
    if (other.get() == s.process) continue;
    for (const auto& [fd, file] : other->fds) {
      count += std::dynamic_pointer_cast<Socket>(file) ? 1U : 0U;
    }
  }
  return count;
}

}  // namespace

void watch_over(Scene& s) {
  struct Seen {
    std::uint64_t sleeps = 0;
    std::uint64_t events = 0;
  };
  std::map<std::uint64_t, Seen> seen;
  while (!s.kernel.over) {
    s.kernel.sleep(kSecond);
    for (const auto& fiber : s.kernel.fibers) {
      Seen& before = seen[fiber->id];
      const std::uint64_t turns = fiber->sleeps - before.sleeps;
      const std::uint64_t events = fiber->events - before.events;
      before = {fiber->sleeps, fiber->events};
      if (turns <= kTurns + kTurnsAnEvent * events) continue;
      s.fail(fmt::format("{} {} turns {} times a second, for {} events", fiber->process->name,
                         fiber->name, turns, events));
    }
  }
}

void look_at_quiet(Scene& s) {
  s.kernel.sleep(3 * kSecond);
  std::vector<std::uint64_t> before;
  for (const auto& fiber : s.kernel.fibers) before.push_back(fiber->sleeps);
  s.kernel.sleep(5 * kSecond);
  for (std::size_t i = 0; i < before.size(); ++i) {
    const Fiber& fiber = *s.kernel.fibers[i];
    if (fiber.sleeps - before[i] <= kQuietTurns) continue;
    s.fail(fmt::format("{} {} turns {} times in 5 quiet seconds", fiber.process->name, fiber.name,
                       fiber.sleeps - before[i]));
  }
  // The channel of the last worker is kept until there is another worker.
  const std::size_t channels = std::max<std::size_t>(s.fleet.running().size(), 1);
  const std::size_t most = kDescriptors + kDescriptorsAThread * s.server.threads +
                           sockets_of_others(s) +
                           kDescriptorsAChannel * s.server.threads * channels;
  if (s.process->fds.size() > most) {
    s.fail(fmt::format("after quiet the server holds {} descriptors", s.process->fds.size()));
  }
}

}  // namespace offload::simulation
