/// simulation [--seed N [--trace]] [--seeds N] [--first N] [--jobs N] [--faults MASK] [--twice]
/// [--stop] Each seed runs in a process of its own: what a killed worker leaves in memory goes with
/// it.
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include "tests/simulation/world.hpp"

namespace {

using namespace offload::simulation;

/// Seconds of real time after which a seed has failed.
constexpr unsigned kRealLimit = 60;

struct Result {
  std::uint64_t hash, steps, answered, refused;
  std::int64_t nanoseconds;
  std::uint64_t failures;
  std::array<char, 256> text;
};

struct Run {
  pid_t pid;
  int pipe;
};

Run start(std::uint64_t seed, unsigned faults, bool traces) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) std::abort();
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::close(ends[0]);
    ::alarm(kRealLimit);
    const Outcome outcome = simulate(seed, faults, traces);
    Result result{outcome.hash,
                  outcome.steps,
                  outcome.answered,
                  outcome.refused,
                  outcome.nanoseconds,
                  outcome.failures.size(),
                  {}};
    if (!outcome.failures.empty()) {
      std::strncpy(result.text.data(), outcome.failures.front().c_str(), result.text.size() - 1);
    }
    std::fflush(stdout);
    if (::write(ends[1], &result, sizeof result) != sizeof result) std::abort();
    ::_exit(0);
  }
  ::close(ends[1]);
  return {pid, ends[0]};
}

Result finish(const Run& run, int status) {
  Result result{};
  if (::read(run.pipe, &result, sizeof result) != sizeof result) {
    result.failures = 1;
    std::snprintf(result.text.data(), result.text.size(), "the process ends with %s %d",
                  WIFSIGNALED(status) ? "signal" : "status",
                  WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
  }
  ::close(run.pipe);
  return result;
}

Result run_one(std::uint64_t seed, unsigned faults, bool traces) {
  const Run run = start(seed, faults, traces);
  int status = 0;
  ::waitpid(run.pid, &status, 0);
  return finish(run, status);
}

/// Leaves out kinds of faults while it still fails.
unsigned shrink(std::uint64_t seed, unsigned faults) {
  for (unsigned kind = 1; kind <= kAllFaults; kind *= 2) {
    if ((faults & kind) != 0 && run_one(seed, faults & ~kind, false).failures != 0) faults &= ~kind;
  }
  return faults;
}

std::uint64_t number(const char* text) {
  return std::strtoull(text, nullptr, 0);
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t first = 1;
  std::uint64_t seeds = 1;
  std::uint64_t jobs = 1;
  unsigned faults = kAllFaults;
  bool traces = false;
  bool twice = false;
  bool stops = false;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--trace") {
      traces = true;
    } else if (option == "--twice") {
      twice = true;
    } else if (option == "--stop") {
      stops = true;
    } else if (i + 1 < argc) {
      const std::uint64_t value = number(argv[++i]);
      if (option == "--seed" || option == "--first") first = value;
      if (option == "--seeds") seeds = value;
      if (option == "--jobs") jobs = value;
      if (option == "--faults") faults = static_cast<unsigned>(value);
    }
  }
  std::map<pid_t, std::pair<std::uint64_t, Run>> running;
  std::uint64_t failed = 0, answered = 0, refused = 0, steps = 0, done = 0, all_hash = 0;
  double seconds = 0;
  for (std::uint64_t next = first; next < first + seeds || !running.empty();) {
    if (stops && failed != 0) seeds = next - first;  // those that run are waited for
    if (next < first + seeds && running.size() < jobs) {
      const Run run = start(next, faults, traces);
      running.emplace(run.pid, std::pair(next++, run));
      continue;
    }
    int status = 0;
    const pid_t pid = ::wait(&status);
    const auto [seed, run] = running.extract(pid).mapped();
    Result result = finish(run, status);
    if (twice && result.failures == 0 && run_one(seed, faults, false).hash != result.hash) {
      result.failures = 1;
      std::strncpy(result.text.data(), "its second run has another trace", result.text.size() - 1);
    }
    ++done;
    answered += result.answered;
    refused += result.refused;
    steps += result.steps;
    all_hash += result.hash;
    seconds += static_cast<double>(result.nanoseconds) / 1e9;
    if (seeds == 1) {
      std::printf("seed %llu: trace %016llx\n", static_cast<unsigned long long>(seed),
                  static_cast<unsigned long long>(result.hash));
    }
    if (result.failures != 0) {
      ++failed;
      std::printf("seed %llu FAILED: %s\n", static_cast<unsigned long long>(seed),
                  result.text.data());
      if (!traces) {
        std::printf("  simulation --seed %llu --faults %u --trace\n",
                    static_cast<unsigned long long>(seed), shrink(seed, faults));
      }
    } else if (done % 1000 == 0) {
      std::printf("%llu seeds, %llu failed\n", static_cast<unsigned long long>(done),
                  static_cast<unsigned long long>(failed));
    }
    std::fflush(stdout);
  }
  std::printf(
      "%llu seeds, %llu failed; %llu answers, %llu refusals, %.0f simulated seconds, %llu turns, "
      "traces %016llx\n",
      static_cast<unsigned long long>(done), static_cast<unsigned long long>(failed),
      static_cast<unsigned long long>(answered), static_cast<unsigned long long>(refused), seconds,
      static_cast<unsigned long long>(steps), static_cast<unsigned long long>(all_hash));
  return failed == 0 && done != 0 ? 0 : 1;
}
