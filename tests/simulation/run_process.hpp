#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>

#include "tests/simulation/kernel/sanitizer.hpp"

/// libgcov's function, in a build that counts lines.
extern "C" void __gcov_dump() __attribute__((weak));  // NOLINT

namespace offload::simulation {

/// The seconds of real time after which a run, which is a separate process, has failed.
#ifdef OFFLOAD_ASAN
inline constexpr unsigned kRealLimit = 200;
#else
inline constexpr unsigned kRealLimit = 20;
#endif

/// A process that runs one world, and the pipe on which its result comes.
struct Run {
  pid_t pid;
  int pipe;
};

/// `body`() returns a Result, which is plain data. Nothing is destroyed in that process: killed
/// programs have left their parts behind.
template <class Body>
Run start_run(const Body& body) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) std::abort();
  std::fflush(stdout);  // the child has the buffer, too
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::close(ends[0]);
    ::alarm(kRealLimit);
    const auto result = body();
    std::fflush(stdout);
    if (::write(ends[1], &result, sizeof result) != sizeof result) std::abort();
    if (__gcov_dump != nullptr) __gcov_dump();
    ::_exit(0);
  }
  ::close(ends[1]);
  return {pid, ends[0]};
}

/// Reads the result of a process that has ended with `status`. Without one, its `text` gives the
/// status.
template <class Result, class Text>
Result finish_run(const Run& run, int status, Text Result::*text) {
  Result result{};
  if (::read(run.pipe, &result, sizeof result) != sizeof result) {
    std::snprintf((result.*text).data(), (result.*text).size(), "the process ends with %s %d",
                  WIFSIGNALED(status) ? "signal" : "status",
                  WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
  }
  ::close(run.pipe);
  return result;
}

inline int await_run(const Run& run) {
  int status = 0;
  ::waitpid(run.pid, &status, 0);
  return status;
}

}  // namespace offload::simulation
