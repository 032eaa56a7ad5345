/// simulation_failures [--what calls|allocations] [--of server|worker] [--over unix|tcp]
/// [--every K] [--from N] [--jobs J] [--number N [--trace]] [--show]
/// Lets each system call and allocation of a program fail, one a run, each run in a separate
/// process. With --every K only every K-th, with --from N from the N-th on.
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <string>

#include "tests/simulation/failures.hpp"
#include "tests/simulation/run_process.hpp"

namespace {

using namespace offload::simulation;

Run start(const Failure& failure, bool traces) {
  return start_run([&] { return run_with_failure(failure, traces); });
}

FailureResult finish(const Run& run, int status) {
  return finish_run(run, status, &FailureResult::wrong);
}

FailureResult run_one(const Failure& failure, bool traces) {
  const Run run = start(failure, traces);
  return finish(run, await_run(run));
}

std::string describe(const Failure& failure) {
  return std::string("--what ") + (failure.allocation ? "allocations" : "calls") + " --of " +
         (failure.of_worker ? "worker" : "server") + " --over " +
         (failure.over_tcp ? "tcp" : "unix");
}

struct Options {
  std::uint64_t every = 1;
  std::uint64_t from = 0;
  std::uint64_t jobs = 1;
  bool traces = false;
  bool shows = false;
};

/// Runs all failures of a kind. Returns the number of runs that went wrong.
std::uint64_t try_all(Failure kind, const Options& options) {
  const FailureResult without = run_one(kind, false);
  if (without.wrong[0] != '\0' || without.points == 0) {
    std::printf("%s: wrong without a failure: %s\n", describe(kind).c_str(), without.wrong.data());
    return 1;
  }
  std::map<pid_t, std::pair<std::uint64_t, Run>> running;
  std::array<std::uint64_t, 3> effects{};
  std::uint64_t done = 0, wrong = 0;
  for (std::uint64_t next = options.from; next < without.points || !running.empty();) {
    if (next < without.points && running.size() < options.jobs) {
      kind.number = next;
      const Run run = start(kind, false);
      running.emplace(run.pid, std::pair(next, run));
      next += options.every;
      continue;
    }
    int status = 0;
    const pid_t pid = ::wait(&status);
    const auto [number, run] = running.extract(pid).mapped();
    FailureResult result = finish(run, status);
    if (result.wrong[0] == '\0' && !result.fired) {
      std::strncpy(result.wrong.data(), "it does not come to that", result.wrong.size() - 1);
    }
    ++done;
    ++effects.at(static_cast<std::size_t>(result.effect));
    const bool failed = result.wrong[0] != '\0';
    wrong += failed ? 1U : 0U;
    if (failed || options.shows) {
      std::printf(
          "%s --number %llu: %s (%s): %s%s\n", describe(kind).c_str(),
          static_cast<unsigned long long>(number), result.call.data(),
          result.error < 0 ? "EAI" : ::strerrorname_np(result.error),
          failed ? "FAILED: " : "effect ",
          failed ? result.wrong.data() : std::to_string(static_cast<int>(result.effect)).c_str());
    }
    std::fflush(stdout);
  }
  std::printf(
      "%s: %llu of %llu tried, %llu wrong; %llu without effect, %llu hurt one client, "
      "%llu ended the program\n",
      describe(kind).c_str(), static_cast<unsigned long long>(done),
      static_cast<unsigned long long>(without.points), static_cast<unsigned long long>(wrong),
      static_cast<unsigned long long>(effects[0]), static_cast<unsigned long long>(effects[1]),
      static_cast<unsigned long long>(effects[2]));
  return wrong;
}

}  // namespace

int main(int argc, char** argv) {
  std::optional<bool> allocation, of_worker, over_tcp;
  std::optional<std::uint64_t> number;
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--trace") {
      options.traces = true;
    } else if (option == "--show") {
      options.shows = true;
    } else if (i + 1 < argc) {
      const std::string value = argv[++i];
      if (option == "--what") allocation = value == "allocations";
      if (option == "--of") of_worker = value == "worker";
      if (option == "--over") over_tcp = value == "tcp";
      if (option == "--number") number = std::strtoull(value.c_str(), nullptr, 0);
      if (option == "--every") options.every = std::strtoull(value.c_str(), nullptr, 0);
      if (option == "--from") options.from = std::strtoull(value.c_str(), nullptr, 0);
      if (option == "--jobs") options.jobs = std::strtoull(value.c_str(), nullptr, 0);
    }
  }
  std::uint64_t wrong = 0;
  for (int kind = 0; kind < 8; ++kind) {
    const Failure failure{(kind & 4) != 0, (kind & 1) != 0, (kind & 2) != 0};
    if (failure.allocation != allocation.value_or(failure.allocation)) continue;
    if (failure.of_worker != of_worker.value_or(failure.of_worker)) continue;
    if (failure.over_tcp != over_tcp.value_or(failure.over_tcp)) continue;
    if (!number) {
      wrong += try_all(failure, options);
      continue;
    }
    Failure one = failure;
    one.number = *number;
    const FailureResult result = run_one(one, options.traces);
    std::printf("%s --number %llu: %s (%d), effect %d: %s\n", describe(one).c_str(),
                static_cast<unsigned long long>(one.number), result.call.data(), result.error,
                static_cast<int>(result.effect),
                result.wrong[0] == '\0' ? "right" : result.wrong.data());
    wrong += result.wrong[0] == '\0' ? 0U : 1U;
  }
  return wrong == 0 ? 0U : 1U;
}
