/// simulation [--seed N [--trace]] [--seeds N] [--first N] [--jobs N] [--faults MASK]
///   [--disturbances N] [--clients N] [--twice] [--stop] [--quick] [--kept FILE]
/// Each seed runs in a separate process: the memory of a killed worker is freed with it.
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "tests/simulation/run_process.hpp"
#include "tests/simulation/world.hpp"

namespace {

using namespace offload::simulation;

/// The maximum numbers of disturbances and clients to which a failing seed is reduced.
constexpr std::uint64_t kMostCounted = 64;
constexpr std::uint64_t kMostClients = 6;

struct Result {
  std::uint64_t hash, steps, answered, refused;
  std::int64_t nanoseconds;
  std::uint64_t failures;
  std::array<char, 256> text;
};

Run start(std::uint64_t seed, const Plan& plan) {
  return start_run([&] {
    const Outcome outcome = simulate(seed, plan);
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
    return result;
  });
}

Result finish(const Run& run, int status) {
  Result result = finish_run(run, status, &Result::text);
  if (result.failures == 0 && result.text.front() != '\0') result.failures = 1;
  return result;
}

Result run_one(std::uint64_t seed, const Plan& plan) {
  const Run run = start(seed, plan);
  return finish(run, await_run(run));
}

bool fails(std::uint64_t seed, const Plan& plan) {
  return run_one(seed, plan).failures != 0;
}

/// Returns the smallest number with which it still fails, if each number below `most` behaves as
/// the numbers between.
std::uint64_t least(std::uint64_t seed, Plan plan, std::uint64_t Plan::*number,
                    std::uint64_t most) {
  std::uint64_t first = 0;
  for (std::uint64_t last = most; first != last;) {
    plan.*number = (first + last) / 2;
    if (fails(seed, plan)) {
      last = plan.*number;
    } else {
      first = plan.*number + 1;
    }
  }
  plan.*number = first;
  return first < most && fails(seed, plan) ? first : UINT64_MAX;
}

/// Removes kinds of faults, and then the last disturbances and clients, while it still fails.
Plan shrink(std::uint64_t seed, Plan plan) {
  for (unsigned kind = 1; kind <= kAllFaults; kind *= 2) {
    Plan fewer = plan;
    fewer.faults &= ~kind;
    if (fewer.faults != plan.faults && fails(seed, fewer)) plan = fewer;
  }
  plan.most_disturbances = least(seed, plan, &Plan::most_disturbances, kMostCounted);
  plan.most_clients = least(seed, plan, &Plan::most_clients, kMostClients);
  return plan;
}

std::string options_of(const Plan& plan) {
  std::string options = " --faults " + std::to_string(plan.faults);
  if (plan.most_disturbances != UINT64_MAX) {
    options += " --disturbances " + std::to_string(plan.most_disturbances);
  }
  if (plan.most_clients != UINT64_MAX) options += " --clients " + std::to_string(plan.most_clients);
  return options;
}

struct Job {
  std::uint64_t seed;
  Plan plan;
};

/// Reads lines with a seed, the kinds of faults, and the reason to keep it.
std::vector<Job> read_kept(const char* path, const Plan& plan) {
  std::vector<Job> jobs;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.front() == '#') continue;
    Job job{0, plan};
    std::istringstream(line) >> job.seed >> job.plan.faults;
    jobs.push_back(job);
  }
  return jobs;
}

std::uint64_t number(const char* text) {
  return std::strtoull(text, nullptr, 0);
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t first = 1;
  std::uint64_t seeds = 1;
  std::uint64_t jobs = 1;
  Plan plan;
  bool twice = false;
  bool stops = false;
  bool quick = false;  ///< nothing is shrunk
  const char* kept = nullptr;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--trace") {
      plan.traces = true;
    } else if (option == "--twice") {
      twice = true;
    } else if (option == "--stop") {
      stops = true;
    } else if (option == "--quick") {
      quick = true;
    } else if (i + 1 < argc) {
      const std::uint64_t value = number(argv[++i]);
      if (option == "--kept") kept = argv[i];
      if (option == "--seed" || option == "--first") first = value;
      if (option == "--seeds") seeds = value;
      if (option == "--jobs") jobs = value;
      if (option == "--faults") plan.faults = static_cast<unsigned>(value);
      if (option == "--disturbances") plan.most_disturbances = value;
      if (option == "--clients") plan.most_clients = value;
    }
  }
  std::vector<Job> jobs_to_run;
  if (kept != nullptr) {
    jobs_to_run = read_kept(kept, plan);
  } else {
    for (std::uint64_t i = 0; i < seeds; ++i) jobs_to_run.push_back({first + i, plan});
  }
  std::map<pid_t, std::pair<Job, Run>> running;
  std::uint64_t failed = 0, answered = 0, refused = 0, steps = 0, done = 0, all_hash = 0;
  double seconds = 0;
  for (std::size_t next = 0; next < jobs_to_run.size() || !running.empty();) {
    if (stops && failed != 0) jobs_to_run.resize(next);  // those that run are waited for
    if (next < jobs_to_run.size() && running.size() < jobs) {
      const Job& job = jobs_to_run[next++];
      const Run run = start(job.seed, job.plan);
      running.emplace(run.pid, std::pair(job, run));
      continue;
    }
    int status = 0;
    const pid_t pid = ::wait(&status);
    const auto [job, run] = running.extract(pid).mapped();
    const std::uint64_t seed = job.seed;
    Result result = finish(run, status);
    if (twice && result.failures == 0 && run_one(seed, job.plan).hash != result.hash) {
      result.failures = 1;
      std::strncpy(result.text.data(), "its second run has another trace", result.text.size() - 1);
    }
    ++done;
    answered += result.answered;
    refused += result.refused;
    steps += result.steps;
    all_hash += result.hash;
    seconds += static_cast<double>(result.nanoseconds) / 1e9;
    if (jobs_to_run.size() == 1) {
      std::printf("seed %llu: trace %016llx\n", static_cast<unsigned long long>(seed),
                  static_cast<unsigned long long>(result.hash));
    }
    if (result.failures != 0) {
      ++failed;
      std::printf("seed %llu FAILED: %s\n", static_cast<unsigned long long>(seed),
                  result.text.data());
      if (!plan.traces && !quick) {
        std::printf("  simulation --seed %llu%s --trace\n", static_cast<unsigned long long>(seed),
                    options_of(shrink(seed, job.plan)).c_str());
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
