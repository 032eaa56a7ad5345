#include "core/cpu.hpp"

#include <numa.h>
#include <pthread.h>
#include <sched.h>

#include <array>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <mutex>
#include <new>
#include <string>

#include "core/error.hpp"
#include "core/log.hpp"
#include "core/process/out_of_memory.hpp"

// In place of libnuma's own functions, which print to standard error between the lines of a log in
// JSON: numa(3).

// NOLINTNEXTLINE(readability-non-const-parameter): the declaration is numa.h's
extern "C" void numa_error(char* where) {
  const int error = errno;
  if (!offload::core::has_memory_for_errors()) {  // as the program is loaded, before main()
    return offload::core::print_without_memory("libnuma", offload::core::what_of(std::bad_alloc()));
  }
  offload::core::log_warning("memory is not bound to a NUMA node: {}: {}", where,
                             offload::core::describe_errno(error));
  errno = error;
}

// NOLINTNEXTLINE(cert-dcl50-cpp,readability-non-const-parameter): the declaration is numa.h's
extern "C" void numa_warn(int, char* format, ...) {
  std::array<char, 256> line{};
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line.data(), line.size(), format, arguments);
  va_end(arguments);
  offload::core::log_warning("libnuma: {}", line.data());
}

namespace offload::core {

std::vector<int> allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  check_errno(::sched_getaffinity(0, sizeof set, &set), "sched_getaffinity");
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<std::size_t>(cpu), &set)) cpus.push_back(cpu);
  }
  return cpus;
}

int numa_node_of(int cpu) noexcept {
  // libnuma fills a cache on the first call, and two threads that fill it at once race.
  static std::mutex cache;
  const std::lock_guard lock(cache);
  return ::numa_available() < 0 ? -1 : ::numa_node_of_cpu(cpu);
}

void pin_this_thread(int cpu) {
  if (cpu < 0 || cpu >= CPU_SETSIZE) {
    throw Error(ErrorCode::invalid_value, "cannot pin to CPU " + std::to_string(cpu));
  }
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(cpu), &set);
  if (const int rc = ::pthread_setaffinity_np(::pthread_self(), sizeof set, &set); rc != 0) {
    throw_errno("cannot pin to CPU " + std::to_string(cpu), rc);
  }
  if (const int node = numa_node_of(cpu); node >= 0) ::numa_set_preferred(node);
}

void name_this_thread(const char* name) noexcept {
  ::pthread_setname_np(::pthread_self(), std::string(name).substr(0, 15).c_str());
}

}  // namespace offload::core
