#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "apps/client/experiment/answer.hpp"
#include "metrics/sequential_median.hpp"

/// @file
/// The statistics of the question "compare": of each pair of slices, the logarithm of the ratio of
/// NEW to BASE, and the median of these with an interval that holds at every look.
namespace offload::client {

/// The figures of a slice, all of them times, so that more is slower.
enum class SliceFigure : std::uint8_t {
  low,         ///< the p25 of a latency: of the requests that nothing disturbed
  p50,         ///< the medians
  p99,         ///< the tails
  per_answer,  ///< time per answer of a closed loop, the inverse of the rate
};
inline constexpr std::size_t kSliceFigures = 4;
/// The names in files and results.
inline constexpr const char* kSliceFigureNames[] = {"p25", "p50", "p99", "rate"};
inline constexpr double kLowQuantile = 0.25;

struct SliceFigures {
  std::array<double, kSliceFigures> us{};  ///< indexed by SliceFigure; 0: there is none
};

/// The rules of an experiment for a comparison.
struct ComparisonRules {
  SliceFigure figure = SliceFigure::low;  ///< the one that decides
  double tolerance = 0.01;                ///< a smaller difference does not count
};

/// The slices of one target, counted by the verdicts of offload-client about its load.
struct SliceCounts {
  std::uint64_t slices = 0;
  std::uint64_t client_late = 0;  ///< not in the pairs
  std::uint64_t server_late = 0;
  std::uint64_t client_busy = 0;  ///< closed loop: the client had no time left
};

/// A comparison of NEW with BASE while its pairs of slices arrive. Its verdict is wrong with a
/// probability of at most kWrong, however often it is asked for.
class PairedComparison {
 public:
  /// The probability that "slower" or "faster" is said of equal targets, and its share for the
  /// figure that decides; the others divide the rest.
  static constexpr double kWrong = 0.05;
  static constexpr double kWrongOfDeciding = 0.04;
  /// A figure beside the one that decides counts only if it is slower by this number of
  /// tolerances: tails differ more from one process to the next.
  static constexpr double kTolerancesBeside = 5;
  /// A load that was late in more of the slices is not the load that was asked for.
  static constexpr double kMostLate = 0.1;

  explicit PairedComparison(const ComparisonRules& rules);

  /// Adds a pair of slices.
  void add(const SliceFigures& base, const SliceFigures& compared);

  /// Returns whether the figure that decides is known well enough to stop.
  [[nodiscard]] bool is_known() const;
  /// Returns the answer as far as it is known.
  [[nodiscard]] Answer answer(const SliceCounts& base, const SliceCounts& compared) const;

  [[nodiscard]] std::size_t pairs() const noexcept { return pairs_; }
  /// Returns the ratio of a figure's NEW to BASE with its interval.
  [[nodiscard]] metrics::Estimate ratio(SliceFigure figure) const;
  [[nodiscard]] std::size_t pairs_of(SliceFigure figure) const {
    return ratios_[index(figure)].count();
  }

 private:
  static std::size_t index(SliceFigure figure) noexcept { return static_cast<std::size_t>(figure); }
  /// "3.1 % slower (2.5 to 3.9)", for a ratio that is not 1.
  [[nodiscard]] std::string difference(SliceFigure figure) const;

  ComparisonRules rules_;
  std::vector<metrics::SequentialMedian> ratios_;  ///< logarithms, indexed by SliceFigure
  std::size_t pairs_ = 0;
};

}  // namespace offload::client
