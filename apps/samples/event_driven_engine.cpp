/// A sample: a program with its own event loop drives a progress engine from it. It sleeps in
/// poll(2) on the engine's descriptor and on a timer, and loses no event.
#include <fmt/core.h>
#include <poll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "core/error.hpp"
#include "core/exit_status.hpp"
#include "core/fd.hpp"
#include "progress/engine.hpp"
#include "progress/task_pool.hpp"
#include "tasks/sync/sync_event_context.hpp"

namespace {

using namespace offload;
using sync::SyncEventTask;

constexpr std::uint64_t kTicks = 50;
constexpr long kTickNanoseconds = 2'000'000;
constexpr core::Duration kPatience = std::chrono::seconds(30);

core::Fd start_timer() {
  core::Fd timer(core::check_errno(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK),
                                   "timerfd_create"));
  const itimerspec every{{0, kTickNanoseconds}, {0, kTickNanoseconds}};
  core::check_errno(::timerfd_settime(timer.get(), 0, &every, nullptr), "timerfd_settime");
  return timer;
}

std::uint64_t take_ticks(int timer) {
  std::uint64_t ticks = 0;
  return ::read(timer, &ticks, sizeof ticks) == sizeof ticks ? ticks : 0;
}

/// The timeout argument of poll(2), rounded up.
int milliseconds(core::Duration time) {
  const auto whole = std::chrono::ceil<std::chrono::milliseconds>(std::min(time, kPatience));
  return static_cast<int>(whole.count());
}

/// Submits the task again for the next count, until all ticks have come.
struct Waiting {
  progress::Context* context;
  std::uint64_t wake_ups = 0;

  static void completed(SyncEventTask& task, void* object) {
    auto& waiting = *static_cast<Waiting*>(object);
    ++waiting.wake_ups;
    task.argument = task.result;
    if (task.result < kTicks) (void)waiting.context->submit(task);
  }
  static void failed(SyncEventTask&, void*) {}
};

int run() {
  progress::Engine engine;
  sync::SyncEvent event({});
  sync::SyncEventContext context(event);
  Waiting waiting{&context};
  progress::TaskPool<SyncEventTask> tasks(context, 1,
                                          {&Waiting::completed, &Waiting::failed, &waiting});
  context.connect(engine);
  context.start();
  SyncEventTask& task = *tasks.allocate();
  task.operation = SyncEventTask::Operation::wait_greater;
  task.argument = 0;
  if (!context.submit(task).ok()) return 1;

  const core::Fd timer = start_timer();
  const auto deadline = core::Clock::now() + kPatience;
  std::uint64_t sleeps = 0;
  while (context.in_flight() != 0 && core::Clock::now() < deadline) {
    while (engine.progress()) continue;
    const core::Duration limit = engine.arm();
    if (!engine.progress()) {  // finds earlier work; later work makes fd() readable
      std::array<pollfd, 2> watched{{{engine.fd(), POLLIN, 0}, {timer.get(), POLLIN, 0}}};
      ::poll(watched.data(), watched.size(), milliseconds(limit));
      ++sleeps;
    }
    engine.disarm();
    if (const std::uint64_t ticks = take_ticks(timer.get()); ticks != 0) event.add(ticks);
  }
  const bool in_time = context.in_flight() == 0;
  context.stop();
  fmt::print("{} ticks, {} of them waited for one by one\n", event.get(), waiting.wake_ups);
  return in_time && sleeps > 0 ? 0 : 1;
}

}  // namespace

int main() {
  return offload::core::exit_status_of("sample-event-driven-engine", run);
}
