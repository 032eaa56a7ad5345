#include "apps/report/merge/merge_intervals.hpp"

#include <gtest/gtest.h>

#include "tests/results/sample.hpp"

namespace offload::report {
namespace {

using namespace results;

report::Run run_of(double begun_s, double duration_s, std::vector<RunInterval> intervals) {
  report::Run run = sample_run(begun_s);
  run.duration_seconds = duration_s;
  run.intervals = std::move(intervals);
  return run;
}

/// Start, length and operations of the merged intervals.
using Row = std::array<double, 3>;
std::vector<Row> rows_of(const std::vector<report::Run>& runs, double warmup_s = 0) {
  report::Run whole = sample_run();
  whole.warmup_seconds = warmup_s;
  std::vector<const report::Run*> pointers;
  for (const report::Run& run : runs) pointers.push_back(&run);
  std::vector<Row> rows;
  for (const RunInterval& interval : merge_intervals(pointers, whole)) {
    rows.push_back({interval.start_s, interval.length_s, static_cast<double>(interval.operations)});
  }
  return rows;
}

TEST(MergeIntervals, JoinsThoseOfASecond) {
  const report::Run one = run_of(0, 2, {interval_of(0, 1, {100}), interval_of(1, 1, {200})});
  const report::Run late =
      run_of(0.01, 2, {interval_of(0, 1.02, {300, 400}), interval_of(1.02, 0.98, {})});
  EXPECT_EQ(rows_of({one, late}), (std::vector<Row>{{0, 1, 3}, {1, 1, 1}}));
  EXPECT_EQ(rows_of({late, one}), (std::vector<Row>{{0, 1, 3}, {1, 1, 1}}));
}

TEST(MergeIntervals, EachBelongsToTheSecondOfItsMiddle) {
  const auto seconds = [] { return std::vector{interval_of(0, 1, {1}), interval_of(1, 1, {1})}; };
  const report::Run one = run_of(0, 2, seconds());
  EXPECT_EQ(rows_of({one, run_of(0.25, 2, seconds())}), (std::vector<Row>{{0, 1, 2}, {1, 1, 2}}));
  EXPECT_EQ(rows_of({one, run_of(0.75, 2, seconds())}),
            (std::vector<Row>{{0, 1, 1}, {1, 1, 2}, {2, 0.75, 1}}));
}

TEST(MergeIntervals, TheirHistogramsMerge) {
  const report::Run one = run_of(0, 1, {interval_of(0, 1, {100, 300})});
  const report::Run other = run_of(0, 1, {interval_of(0, 1, {200, 901})});
  const report::Run whole = sample_run();
  const auto intervals = merge_intervals({&one, &other}, whole);
  ASSERT_EQ(intervals.size(), 1U);
  EXPECT_EQ(intervals[0].service_time_us.histogram, encoded({100, 200, 300, 901}));
  EXPECT_NEAR(intervals[0].service_time_us.p50, 200, 1);
  EXPECT_EQ(intervals[0].service_time_us.max, 901);
  EXPECT_FALSE(intervals[0].response_time_us);
}

TEST(MergeIntervals, ALongOneJoinsWhatOthersHaveThere) {
  const report::Run stalled =
      run_of(0, 4, {interval_of(0, 1, {1}), interval_of(1, 2, {2}), interval_of(3, 1, {3})});
  const report::Run even = run_of(0, 4,
                                  {interval_of(0, 1, {1}), interval_of(1, 1, {1}),
                                   interval_of(2, 1, {1}), interval_of(3, 1, {1})});
  const std::vector<Row> rows{{0, 1, 2}, {1, 2, 3}, {3, 1, 2}};
  EXPECT_EQ(rows_of({even, stalled}), rows);
  EXPECT_EQ(rows_of({stalled, even}), rows);  // the long one comes before the first short one there
}

TEST(MergeIntervals, TheLastOneMayBeShorter) {
  const report::Run one = run_of(0, 1.5, {interval_of(0, 1, {1}), interval_of(1, 0.5, {1})});
  const auto rows = rows_of({one, one});
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[1], (Row{1, 0.5, 2}));
  const report::Run half = run_of(0, 0.5, {interval_of(0, 0.5, {1})});
  EXPECT_EQ(rows_of({half}), (std::vector<Row>{{0, 0.5, 1}}));
}

TEST(MergeIntervals, AfterTheWarmUp) {
  const report::Run one = run_of(0, 1, {interval_of(3, 1, {1})});
  EXPECT_EQ(rows_of({one}, 3), (std::vector<Row>{{3, 1, 1}}));
}

TEST(MergeIntervals, FarApartTakesNoMemory) {
  const report::Run one =
      run_of(0, 1, {interval_of(0, 3.6e6, {1}), interval_of(3.6e6, 3.6e6, {1})});
  EXPECT_EQ(rows_of({one, one}), (std::vector<Row>{{0, 3.6e6, 2}, {3.6e6, 3.6e6, 2}}));
}

}  // namespace
}  // namespace offload::report
