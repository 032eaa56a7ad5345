#include "apps/samples/sync_event/exchange.hpp"

#include "cli/options.hpp"
#include "core/error.hpp"
#include "core/exit_status.hpp"
#include "progress/engine.hpp"
#include "progress/task_pool.hpp"
#include "tasks/sync/sync_event_context.hpp"

namespace offload::samples {

namespace {

using sync::SyncEventTask;

/// The value by which `side` signals in `round`, which is greater by one than what it has waited
/// for.
std::uint64_t signal_of(ExchangeSide side, std::uint64_t round) {
  return 2 * round + (side == ExchangeSide::host ? 1 : 2);
}

/// The event is greater once the other side has signalled in `round`.
std::uint64_t threshold_of(ExchangeSide side, std::uint64_t round) {
  return 2 * round + (side == ExchangeSide::host ? 1 : 0);
}

[[noreturn]] void give_up() {
  throw core::Error(core::ErrorCode::timed_out, "the other side did not signal in time");
}

void exchange_synchronously(sync::SyncEvent& event, ExchangeSide side, bool atomic) {
  const auto signal = [&](std::uint64_t round) {
    if (atomic) {
      event.add(1);
    } else {
      event.set(signal_of(side, round));
    }
  };
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    if (side == ExchangeSide::host) signal(round);
    if (!event.wait_greater(threshold_of(side, round), sync::WaitMode::block, kPatience)) give_up();
    if (side == ExchangeSide::dpu) signal(round);
  }
}

/// Keeps `depth` waits in flight, for the next rounds; each that completes submits the signal that
/// follows it, and is submitted again for a later round. One thread.
class AsyncExchange {
 public:
  AsyncExchange(sync::SyncEvent& event, ExchangeSide side, const SyncEventOptions& options)
      : side_(side),
        depth_(options.depth),
        operation_(options.atomic ? SyncEventTask::Operation::add : SyncEventTask::Operation::set),
        context_(event),
        tasks_(context_, options.depth + kSignals, {&AsyncExchange::completed, &failed, this}) {}

  void run() {
    context_.connect(engine_);
    context_.start();
    if (side_ == ExchangeSide::host) signal(0);
    for (std::uint64_t round = 0; round < depth_; ++round) wait(*tasks_.allocate(), round);
    auto seen = done_;
    auto deadline = core::Clock::now() + kPatience;
    while (context_.in_flight() != 0 && core::Clock::now() < deadline) {
      (void)engine_.run_once(deadline);
      if (done_ != seen) deadline = core::Clock::now() + kPatience;
      seen = done_;
    }
    context_.stop();
    if (done_ < kRounds) give_up();
  }

 private:
  // One that is seen by the other side before its own completion, and the one after it.
  static constexpr std::uint32_t kSignals = 2;

  void wait(SyncEventTask& task, std::uint64_t round) {
    task.operation = SyncEventTask::Operation::wait_greater;
    task.argument = threshold_of(side_, round);
    (void)context_.submit(task);
  }

  void signal(std::uint64_t round) {
    SyncEventTask& task = *tasks_.allocate();
    task.operation = operation_;
    task.argument = operation_ == SyncEventTask::Operation::add ? 1 : signal_of(side_, round);
    (void)context_.submit(task);
  }

  static void completed(SyncEventTask& task, void* object) {
    auto& self = *static_cast<AsyncExchange*>(object);
    if (task.operation != SyncEventTask::Operation::wait_greater) {
      (void)self.tasks_.release(task);
      return;
    }
    const std::uint64_t round = self.done_++;
    if (self.side_ == ExchangeSide::dpu) {
      self.signal(round);
    } else if (round + 1 < kRounds) {
      self.signal(round + 1);
    }
    if (round + self.depth_ < kRounds) self.wait(task, round + self.depth_);
  }

  static void failed(SyncEventTask&, void*) {}  // a stop: run() says that rounds are missing

  ExchangeSide side_;
  std::uint64_t depth_;
  SyncEventTask::Operation operation_;
  std::uint64_t done_ = 0;
  progress::Engine engine_;
  sync::SyncEventContext context_;
  progress::TaskPool<SyncEventTask> tasks_;
};

}  // namespace

int sync_event_sample(const std::string& program, const std::string& description, int argc,
                      const char* const* argv, void (*run)(const SyncEventOptions& options)) {
  return core::exit_status_of(program, [&] {
    SyncEventOptions options;
    cli::CommandLine line(program, description);
    cli::add_text(line, "--comch", options.comch, "Connect at this address: unix:PATH");
    cli::add_flag(line, "--async", options.async,
                  "Use tasks of a context, instead of the functions of the event");
    cli::add_integer<std::uint32_t>(line, "--qdepth", options.depth, 1, kRounds,
                                    "Keep this number of waits in flight, with --async");
    cli::add_flag(line, "--atomic", options.atomic, "Signal with add, instead of set");
    cli::add_log_options(line, options.log);
    cli::add_foreign(line, "-d,--dev-pci-addr", "use --comch, the address of the connection");
    cli::add_foreign(line, "-r,--rep-pci-addr", "use --comch, the address of the connection");
    if (const auto leave = line.parse(argc, argv)) return cli::leave(*leave);
    cli::start_log(program, options.log);
    run(options);
    return 0;
  });
}

void exchange_signals(sync::SyncEvent& event, ExchangeSide side, const SyncEventOptions& options) {
  if (options.async) {
    AsyncExchange(event, side, options).run();
  } else {
    exchange_synchronously(event, side, options.atomic);
  }
}

}  // namespace offload::samples
