#include "telemetry/process_metrics.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/fd.hpp"

namespace offload::telemetry {
namespace {

/// A figure of this process, as a page has it now.
double figure(const std::string& name) {
  Exposition page(false);
  add_process(page, std::chrono::system_clock::now());
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

}  // namespace
}  // namespace offload::telemetry
