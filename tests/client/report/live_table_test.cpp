#include "apps/client/report/live_table.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/fd.hpp"
#include "tests/core/process/terminal.hpp"
#include "tests/support/readable.hpp"

namespace offload::client {
namespace {

/// Returns an interval from 1 s to 3 s.
results::RunInterval second() {
  results::RunInterval second;
  second.start_s = 1;
  second.length_s = 2;
  second.operations = 5000;
  second.errors = 1;
  second.in_flight = 4.5;
  second.response_time_us = {80, 900, 1000, "", 100};
  return second;
}

std::string read_all(int fd) {
  std::string text;
  std::array<char, 4096> room{};
  while (support::is_readable(fd, 0)) {
    const ssize_t count = ::read(fd, room.data(), room.size());
    if (count <= 0) break;
    text.append(room.data(), static_cast<std::size_t>(count));
  }
  return text;
}

TEST(LiveTable, GrowsByALineASecondOnATerminal) {
  const core::test::Terminal terminal;
  ASSERT_TRUE(terminal.screen.valid());
  std::string shown;
  {
    const core::test::Replaced replaced(STDERR_FILENO, terminal.screen.get());
    LiveTable(true).show({});
    LiveTable table(false);
    table.begin(std::chrono::seconds(10), true);
    table.show(second());
    results::RunInterval few = second();
    few.response_time_us->count = 99;
    table.show(few);
    few.response_time_us->count = 0;
    table.show(few);
    few.length_s = 0;
    table.show(few);
    shown = read_all(terminal.user.get());
  }
  EXPECT_NE(shown.find("response p50 us"), std::string::npos) << shown;
  std::erase(shown, '\r');
  EXPECT_EQ(
      shown.substr(shown.find('\n') + 1),
      "     3.0           2500          4.5             80.0        900.0          1        7\n"
      "     3.0           2500          4.5             80.0            -          1        7\n"
      "     3.0           2500          4.5                -            -          1        7\n"
      "     1.0              0          4.5                -            -          1        9\n");
}

TEST(LiveTable, RepeatsItsLegendAfterTwentyLines) {
  const core::test::Terminal terminal;
  ASSERT_TRUE(terminal.screen.valid());
  std::vector<std::uint64_t> with_legend;
  {
    const core::test::Replaced replaced(STDERR_FILENO, terminal.screen.get());
    LiveTable table(false);
    table.begin({}, true);
    for (std::uint64_t line = 0; line <= 2 * kLinesOfLegend; ++line) {
      table.show(second());
      if (read_all(terminal.user.get()).find("time s") != std::string::npos) {
        with_legend.push_back(line);
      }
    }
  }
  EXPECT_EQ(with_legend, (std::vector<std::uint64_t>{0, 20, 40}));
}

TEST(LiveTable, IsNotShownElsewhere) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const core::Fd read_end(ends[0]);
  const core::Fd write_end(ends[1]);
  {
    const core::test::Replaced replaced(STDERR_FILENO, write_end.get());
    LiveTable table(false);
    table.begin({}, true);
    table.show(second());
  }
  EXPECT_EQ(read_all(read_end.get()), "");
}

}  // namespace
}  // namespace offload::client
