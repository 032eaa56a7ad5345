#include "telemetry/process_metrics.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <string>
#include <vector>

#include "core/fd.hpp"

namespace offload::telemetry {
namespace {

/// A figure of this process, as a page has it now.
double figure(const std::string& name,
              std::chrono::system_clock::time_point started = std::chrono::system_clock::now()) {
  Exposition page(false);
  add_process(page, started);
  const std::string text = page.text();
  const auto line = text.find('\n' + name + ' ');
  return line == std::string::npos ? -1 : std::stod(text.substr(line + name.size() + 2));
}

TEST(ProcessMetrics, CountsWhatIsOpen) {
  const double before = figure("process_open_fds");
  EXPECT_GE(before, 3);
  std::vector<core::Fd> files;
  for (int i = 0; i < 7; ++i) files.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(figure("process_open_fds"), before + 7);
  files.clear();
  EXPECT_EQ(figure("process_open_fds"), before);
  EXPECT_GT(figure("process_max_fds"), before);
}

TEST(ProcessMetrics, KnowsItsMemoryAndTime) {
  EXPECT_GT(figure("process_resident_memory_bytes"), 1e6);
  const double before = figure("process_cpu_seconds_total");
  while (figure("process_cpu_seconds_total") == before) continue;  // it is this process's
  EXPECT_GT(figure("process_cpu_seconds_total"), before);
}

/// The CPU time of this process in seconds.
double cpu_seconds() {
  rusage usage{};
  EXPECT_EQ(::getrusage(RUSAGE_SELF, &usage), 0);
  const auto of = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return of(usage.ru_utime) + of(usage.ru_stime);
}

TEST(ProcessMetrics, TimeIsThatOfUserAndSystem) {
  const double before = cpu_seconds();
  const double shown = figure("process_cpu_seconds_total");
  EXPECT_GE(shown, before * (1 - 1e-9));
  EXPECT_LE(shown, cpu_seconds() * (1 + 1e-9));
}

TEST(ProcessMetrics, KnowItsStart) {
  EXPECT_EQ(figure("process_start_time_seconds",
                   std::chrono::system_clock::time_point(std::chrono::seconds(1'700'000'000))),
            1'700'000'000);
}

TEST(ProcessMetrics, TheBuildIsConstantlyOne) {
  Exposition page(false);
  add_build_info(page, "a-program");
  EXPECT_NE(page.text().find("\noffload_build_info{program=\"a-program\",version=\"" +
                             std::string(build().version) + "\""),
            std::string::npos);
  EXPECT_TRUE(page.text().ends_with("\"} 1\n")) << page.text();
}

}  // namespace
}  // namespace offload::telemetry
