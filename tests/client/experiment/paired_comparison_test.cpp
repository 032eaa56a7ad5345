#include "apps/client/experiment/paired_comparison.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <utility>

namespace offload::client {
namespace {

using Verdict = Answer::Verdict;

/// Slices of a made-up machine. Each has its own noise. The machine is slower for a while
/// now and then, which is shared by a pair, but for a tenth of the slices that are hit alone.
class MadeUpMachine {
 public:
  explicit MadeUpMachine(std::uint64_t seed) : random_(seed) {}

  /// Adds a pair, NEW of which takes `factor` as long, and its tails `tail` as long.
  void add_pair(PairedComparison& comparison, double factor, double tail = 1) {
    phase_ = 0.9 * phase_ + 0.1 * normal();
    const SliceFigures base = slice(1, 1);
    comparison.add(base, slice(factor, factor * tail));
  }

 private:
  double normal() { return std::normal_distribution<double>()(random_); }
  SliceFigures slice(double factor, double tail) {
    double us = 200 * std::exp(phase_ + 0.02 * normal());
    if (random_() % 10 == 0) us *= 1 + std::abs(normal() / normal());
    return {{us * factor, 1.05 * us * factor, 3 * us * tail * std::exp(0.2 * normal()),
             us * factor * std::exp(0.1 * normal())}};
  }

  std::mt19937_64 random_;
  double phase_ = 0;
};

SliceCounts counted(std::uint64_t slices) {
  SliceCounts counts;
  counts.slices = slices;
  return counts;
}

/// Compares as offload-bench does, for at most `pairs`, with a look after each.
Answer compared(std::uint64_t seed, double factor, double tail = 1, std::size_t pairs = 350) {
  PairedComparison comparison({});
  MadeUpMachine machine(seed);
  while (comparison.pairs() < pairs && !comparison.is_known()) {
    machine.add_pair(comparison, factor, tail);
  }
  const auto counts = counted(comparison.pairs());
  return comparison.answer(counts, counts);
}

int count_of(Verdict verdict, double factor, int comparisons) {
  int count = 0;
  for (int seed = 0; seed < comparisons; ++seed) {
    count += compared(static_cast<std::uint64_t>(seed), factor).verdict == verdict ? 1 : 0;
  }
  return count;
}

TEST(PairedComparison, FewEqualTargetsAreCalledDifferent) {
  constexpr int kComparisons = 400;
  const int equal = count_of(Verdict::equal, 1, kComparisons);
  const int untold = count_of(Verdict::cannot_tell, 1, kComparisons);
  EXPECT_GE(equal + untold, kComparisons * 95 / 100);
  EXPECT_GE(equal, kComparisons * 80 / 100);
}

TEST(PairedComparison, ThreePercentAreFound) {
  EXPECT_GE(count_of(Verdict::slower, 1.03, 100), 90);
  EXPECT_GE(count_of(Verdict::faster, 1 / 1.03, 100), 90);
}

TEST(PairedComparison, TenPercentAreAlwaysFound) {
  EXPECT_EQ(count_of(Verdict::slower, 1.1, 100), 100);
}

TEST(PairedComparison, TheSentenceHasTheDifferenceAndItsInterval) {
  PairedComparison comparison({});
  for (int i = 0; i < 400; ++i) {
    const double ratio = 1 + 0.0001 * (25 + (i * 7) % 14);  // 1.0025 to 1.0038
    comparison.add({{100, 100, 100, 100}}, {{100 * ratio * ratio, 100, 100, 100}});
  }
  EXPECT_EQ(comparison.answer(counted(400), counted(400)).sentence, "equal within 1 %");
  PairedComparison slower({});
  PairedComparison faster({});
  for (int i = 0; i < 400; ++i) {
    const double ratio = 1.03 + 0.0001 * ((i * 7) % 20);
    slower.add({{100, 100, 100, 100}}, {{100 * ratio, 100, 100, 100}});
    faster.add({{100, 100, 100, 100}}, {{100 / ratio, 100, 100, 100}});
  }
  EXPECT_EQ(slower.answer(counted(400), counted(400)).sentence, "3.1 % slower (3.1 to 3.1)");
  EXPECT_EQ(faster.answer(counted(400), counted(400)).sentence, "3.0 % faster (3.0 to 3.0)");
}

TEST(PairedComparison, WithoutPairsNothingIsKnown) {
  const PairedComparison comparison({});
  EXPECT_FALSE(comparison.is_known());
  EXPECT_EQ(comparison.answer({}, {}).verdict, Verdict::cannot_tell);
  EXPECT_EQ(comparison.answer({}, {}).sentence, "cannot be told within the time given");
}

/// Adds pairs that differ by `first` and by `second`, in turn, in all figures.
void add_in_turn(PairedComparison& comparison, double first, double second) {
  for (int pair = 0; pair < 400; ++pair) {
    const double ratio = pair % 2 == 0 ? first : second;
    comparison.add({{1, 1, 1, 1}}, {{ratio, ratio, ratio, ratio}});
  }
}

// It has to be known to a quarter of it.
TEST(PairedComparison, ADifferenceIsKnownOnceItsIntervalIsNarrow) {
  const auto is_known = [](double first, double second) {
    PairedComparison comparison({});
    add_in_turn(comparison, first, second);
    return comparison.is_known();
  };
  EXPECT_TRUE(is_known(1, 1));
  EXPECT_TRUE(is_known(1.005, 0.995));
  EXPECT_TRUE(is_known(1.5, 1.5));
  EXPECT_TRUE(is_known(1 / 1.5, 1 / 1.5));
  EXPECT_TRUE(is_known(1.5, 1.7));
  EXPECT_TRUE(is_known(1 / 1.5, 1 / 1.7));
  EXPECT_FALSE(is_known(1.2, 1.5));
  EXPECT_FALSE(is_known(1, 1.5));
  EXPECT_FALSE(is_known(1 / 1.5, 1));
  EXPECT_FALSE(is_known(0.98, 1.005));
}

TEST(PairedComparison, AnIntervalThatBeginsAtEqualTellsNothing) {
  PairedComparison comparison({});
  add_in_turn(comparison, 1, 1.5);
  EXPECT_EQ(comparison.answer(counted(400), counted(400)).verdict, Verdict::cannot_tell);
  PairedComparison other({});
  add_in_turn(other, 1 / 1.5, 1);
  EXPECT_EQ(other.answer(counted(400), counted(400)).verdict, Verdict::cannot_tell);
}

// The other figures are equal, and the one that decides, too.
TEST(PairedComparison, EachFigureBesideIsLookedAt) {
  const SliceFigures base{{200, 210, 600, 205}};
  for (std::size_t i = 0; i < kSliceFigures; ++i) {
    SliceFigures slower = base;
    slower.us[i] *= 1.3;
    PairedComparison comparison({});
    for (int pair = 0; pair < 400; ++pair) comparison.add(base, slower);
    const Answer answer = comparison.answer(counted(400), counted(400));
    EXPECT_EQ(answer.verdict, Verdict::slower) << kSliceFigureNames[i];
    const bool decides = static_cast<SliceFigure>(i) == ComparisonRules{}.figure;
    EXPECT_EQ(answer.sentence.find(kSliceFigureNames[i]) == std::string::npos, decides)
        << answer.sentence;
  }
}

TEST(PairedComparison, AFigureThatOneOfAPairLacksDoesNotCount) {
  const SliceFigures figures{{200, 210, 600, 205}};
  for (const auto& [base, other] : {std::pair{SliceFigures{}, figures}, {figures, {}}}) {
    PairedComparison comparison({});
    for (int pair = 0; pair < 400; ++pair) {
      comparison.add(figures, figures);
      for (int i = 0; i < 2; ++i) comparison.add(base, other);
    }
    EXPECT_EQ(comparison.pairs(), 1200U);
    EXPECT_EQ(comparison.answer(counted(1200), counted(1200)).verdict, Verdict::equal);
  }
}

TEST(PairedComparison, ATailThatIsSlowerCountsAlthoughTheRestIsEqual) {
  const Answer answer = compared(1, 1, 2, 100);
  EXPECT_EQ(answer.verdict, Verdict::slower);
  EXPECT_NE(answer.sentence.find("in the p99"), std::string::npos) << answer.sentence;
}

TEST(PairedComparison, AFasterTargetWithASlowerTailIsSlower) {
  const Answer answer = compared(1, 0.9, 2, 100);
  EXPECT_EQ(answer.verdict, Verdict::slower) << answer.sentence;
}

/// A load that was not what was asked for has no good verdict.
TEST(PairedComparison, ALateClientMakesNoVerdict) {
  PairedComparison comparison({});
  for (int i = 0; i < 100; ++i) comparison.add({{1, 1, 1, 1}}, {{1, 1, 1, 1}});
  EXPECT_EQ(comparison.answer(counted(100), counted(100)).verdict, Verdict::equal);
  SliceCounts late = counted(100);
  late.client_late = 11;
  EXPECT_EQ(comparison.answer(late, counted(100)).verdict, Verdict::cannot_tell);
  EXPECT_EQ(comparison.answer(counted(100), late).verdict, Verdict::cannot_tell);
  late.client_late = 10;
  EXPECT_EQ(comparison.answer(counted(100), late).verdict, Verdict::equal);
}

TEST(PairedComparison, ATargetThatDoesNotKeepUpIsSlower) {
  PairedComparison comparison({});
  for (int i = 0; i < 100; ++i) comparison.add({{1, 1, 1, 1}}, {{1, 1, 1, 1}});
  SliceCounts late = counted(100);
  late.server_late = 30;
  EXPECT_EQ(comparison.answer(counted(100), late).verdict, Verdict::slower);
  EXPECT_EQ(comparison.answer(late, counted(100)).verdict, Verdict::cannot_tell);
}

TEST(PairedComparison, AClientWithoutTimeLeftMakesNothingEqual) {
  PairedComparison comparison({});
  for (int i = 0; i < 100; ++i) comparison.add({{1, 1, 1, 1}}, {{1, 1, 1, 1}});
  SliceCounts busy = counted(100);
  busy.client_busy = 60;
  EXPECT_EQ(comparison.answer(busy, counted(100)).verdict, Verdict::cannot_tell);
  EXPECT_EQ(comparison.answer(counted(100), busy).verdict, Verdict::cannot_tell);
  busy.client_busy = 50;
  EXPECT_EQ(comparison.answer(busy, busy).verdict, Verdict::equal);
}

}  // namespace
}  // namespace offload::client
