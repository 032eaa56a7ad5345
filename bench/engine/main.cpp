/// The benchmark of the engine's overhead: the completion of a task compared with a function call,
/// and a turn with idle contexts compared with a turn without.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/exit_status.hpp"
#include "progress/context.hpp"
#include "progress/engine.hpp"
#include "progress/task_pool.hpp"

namespace offload::bench {
namespace {

using Clock = std::chrono::steady_clock;
using progress::Context;

constexpr std::size_t kTasks = 64;
constexpr std::size_t kIdleContexts = 10'000;

class ReadyContext;

class ReadyTask final : public progress::Task {
 public:
  using ContextType = ReadyContext;
};

/// A context whose tasks are complete as soon as they are submitted.
class ReadyContext final : public Context {
 public:
  ReadyContext() : Context("ready") {}

  bool on_poll(std::size_t most) override {
    progress::Task* task = nullptr;
    std::size_t done = 0;
    for (; done < most && (task = first_in_flight()) != nullptr; ++done) complete(*task, {});
    return done != 0;
  }

 private:
  core::Status on_submit(progress::Task&) noexcept override { return {}; }
};

void count(ReadyTask& task, void* sum) {
  benchmark::DoNotOptimize(&task);
  ++*static_cast<std::uint64_t*>(sum);
}

/// Measures `work` alone; both sides of a ratio include the cost of the clock.
template <class Work>
void time(benchmark::State& state, Work work) {
  const auto begin = Clock::now();
  work();
  state.SetIterationTime(std::chrono::duration<double>(Clock::now() - begin).count());
}

void call_functions(benchmark::State& state) {
  std::uint64_t sum = 0;
  struct Call {
    void (*function)(ReadyTask& task, void* sum);
    ReadyTask* task;
    void* sum;
  };
  ReadyTask tasks[kTasks];
  std::vector<Call> calls;
  for (ReadyTask& task : tasks) calls.push_back({count, &task, &sum});
  benchmark::DoNotOptimize(calls.data());
  for ([[maybe_unused]] const auto iteration : state) {
    time(state, [&] {
      for (const Call& call : calls) call.function(*call.task, call.sum);
    });
  }
  benchmark::DoNotOptimize(sum);
}

/// A running context, with tasks for one poll.
struct Ready {
  Ready() {
    context.connect(engine);
    pool = std::make_unique<progress::TaskPool<ReadyTask>>(
        context, kTasks, progress::TaskPool<ReadyTask>::Callbacks{count, count, &sum});
    context.start();
    while (ReadyTask* const task = pool->allocate()) tasks.push_back(task);
  }
  ~Ready() { context.stop(); }
  Ready(const Ready&) = delete;
  Ready& operator=(const Ready&) = delete;

  void submit() {
    for (ReadyTask* task : tasks) benchmark::DoNotOptimize(context.submit(*task).ok());
  }
  void poll() { context.on_poll(kTasks); }

  std::uint64_t sum = 0;
  progress::Engine engine;
  ReadyContext context;
  std::unique_ptr<progress::TaskPool<ReadyTask>> pool;
  std::vector<ReadyTask*> tasks;
};

void poll_completions(benchmark::State& state) {
  Ready ready;
  for ([[maybe_unused]] const auto iteration : state) {
    ready.submit();
    time(state, [&] { ready.poll(); });
  }
}

void submit_and_poll(benchmark::State& state) {
  Ready ready;
  for ([[maybe_unused]] const auto iteration : state) {
    time(state, [&] {
      ready.submit();
      ready.poll();
    });
  }
}

/// Measures a turn of an engine with `idle` idle contexts.
void turn(benchmark::State& state, std::size_t idle) {
  progress::Engine engine;
  std::vector<std::unique_ptr<ReadyContext>> contexts;
  for (std::size_t i = 0; i < idle; ++i) {
    contexts.push_back(std::make_unique<ReadyContext>());
    contexts.back()->connect(engine);
    contexts.back()->start();
  }
  for ([[maybe_unused]] const auto iteration : state) benchmark::DoNotOptimize(engine.progress());
  for (const auto& context : contexts) context->stop();
}
void turn_alone(benchmark::State& state) {
  turn(state, 0);
}
void turn_with_idle_contexts(benchmark::State& state) {
  turn(state, kIdleContexts);
}

BENCHMARK(call_functions)->UseManualTime();
BENCHMARK(poll_completions)->UseManualTime();
BENCHMARK(submit_and_poll)->UseManualTime();
BENCHMARK(turn_alone);
BENCHMARK(turn_with_idle_contexts);

/// A console reporter that also keeps the times for print_ratio().
class Reporter final : public benchmark::ConsoleReporter {
 public:
  void ReportRuns(const std::vector<Run>& runs) override {
    ConsoleReporter::ReportRuns(runs);
    for (const Run& run : runs) times_[run.run_name.function_name] = run.GetAdjustedRealTime();
  }
  void print_ratio(const std::string& measured, const std::string& reference) const {
    const auto time = times_.find(measured);
    const auto base = times_.find(reference);
    if (time == times_.end() || base == times_.end()) return;  // filtered out
    std::printf("%s / %s: %.2f\n", measured.c_str(), reference.c_str(),
                time->second / base->second);
  }

 private:
  std::map<std::string, double> times_;
};

}  // namespace
}  // namespace offload::bench

int main(int argc, char** argv) {
  return offload::core::exit_status_of("bench-engine", [&] {
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
    offload::bench::Reporter reporter;
    benchmark::RunSpecifiedBenchmarks(&reporter);
    std::cout.flush();  // which is buffered apart from what is printed below
    reporter.print_ratio("poll_completions", "call_functions");
    reporter.print_ratio("submit_and_poll", "call_functions");
    reporter.print_ratio("turn_with_idle_contexts", "turn_alone");
    return 0;
  });
}
