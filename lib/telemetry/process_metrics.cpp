#include "telemetry/process_metrics.hpp"

#include <dirent.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <memory>

#include "revision.hpp"

#ifndef OFFLOAD_CUDA_VERSION
#define OFFLOAD_CUDA_VERSION "none"
#endif

namespace offload::telemetry {
namespace {

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

/// 0 where /proc is not mounted.
double resident_bytes() {
  std::ifstream file("/proc/self/statm");
  double total = 0;
  double resident = 0;
  file >> total >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

/// Linux 6.2 and later says the number as the folder's size. Going through the folder takes the
/// kernel a microsecond an entry, and a server has hundreds. 0 where /proc is not mounted.
double open_descriptors() {
  struct stat folder {};
  if (::stat("/proc/self/fd", &folder) != 0) return 0;
  if (folder.st_size > 0) return static_cast<double>(folder.st_size);
  const std::unique_ptr<DIR, int (*)(DIR*)> files(::opendir("/proc/self/fd"), &::closedir);
  if (!files) return 0;
  int count = -3;  // but for ".", ".." and its own
  while (::readdir(files.get()) != nullptr) ++count;
  return count;
}

}  // namespace

const Build& build() noexcept {
  static constexpr Build built{OFFLOAD_VERSION, OFFLOAD_REVISION, OFFLOAD_CUDA_VERSION};
  return built;
}

int process_id() noexcept {
  return ::getpid();
}

void add_build_info(Exposition& page, const std::string& program) {
  page.gauge({"offload_build_info", "Constant 1; labels describe the build."},
             {{"program", program},
              {"version", build().version},
              {"revision", build().revision},
              {"cuda", build().cuda}},
             1);
}

void add_process(Exposition& page, std::chrono::system_clock::time_point started) {
  page.gauge({"process_start_time_seconds", "Time of the start of serving, since the epoch."}, {},
             std::chrono::duration<double>(started.time_since_epoch()).count());
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  page.counter({"process_cpu_seconds_total", "User and system CPU time of all threads."}, {},
               seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime));
  page.gauge({"process_resident_memory_bytes", "Resident memory of the process."}, {},
             resident_bytes());
  page.gauge({"process_open_fds", "Open file descriptors."}, {}, open_descriptors());
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  page.gauge({"process_max_fds", "Limit of open file descriptors."}, {},
             static_cast<double>(limit.rlim_cur));
}

}  // namespace offload::telemetry
