#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "apps/report/compare/side.hpp"
#include "apps/report/compare/threshold.hpp"
#include "metrics/confidence.hpp"

/// The statistics of compare: the n-th run of NEW over the n-th run of BASE. A disturbance of both
/// runs of a pair, such as a machine that becomes slower, cancels out of such a ratio.
namespace offload::report {

/// With fewer the interval of a ratio is wider than any threshold that is of use.
inline constexpr std::size_t kFewestPairs = 3;

/// One figure of NEW over that of BASE.
struct Ratio {
  Figure figure;
  std::string label;  ///< "response p99 (us)"
  double base = 0;    ///< medians of the runs, for people to read
  double candidate = 0;
  metrics::Estimate estimate;  ///< of the ratio, with a confidence of 95 %
  /// The possible error of the ratio, as a share: 0.03 for 3 %. At least half of the interval, and
  /// at least the width of a histogram's buckets. For runs that did not alternate, also at least
  /// `base_range`: nothing else would show a drift of that size between BASE and NEW.
  double noise = 0;
  double interval_noise = 0;  ///< half of the interval alone, which more repeats make smaller
  double base_range = 0;      ///< BASE against itself: its largest over its smallest run, less 1
};

struct Comparison {
  std::size_t pairs = 0;
  std::size_t unpaired = 0;  ///< runs of the longer side that are left out
  /// Each pair ran before the next one began: a drift does not look like a difference.
  bool alternated = false;
  /// Why the runs cannot be compared, empty if they can.
  std::string unlike;
  /// Empty with fewer than kFewestPairs. A figure that is 0 in some run, or for which a run has too
  /// few latencies, has none.
  std::vector<Ratio> ratios;
};

/// Returns the first option of the load that is not the same in all results of both sides, as a
/// sentence; empty if there is none.
std::string unlike_options(const std::vector<Result>& base, const std::vector<Result>& candidate);

Comparison compare(const std::vector<const Run*>& base, const std::vector<const Run*>& candidate);

enum class Judgement : std::uint8_t {
  not_exceeded,
  exceeded,   ///< the whole interval is beyond the bound, or the ratio beyond one far from noise
  noisy,      ///< the bound is closer to 1 than the noise
  undecided,  ///< the ratio is beyond the bound, part of its interval is not
};

/// Judges a threshold of `ratio`'s figure.
Judgement judge(const Threshold& threshold, const Ratio& ratio);

/// About how many pairs it takes to tell this ratio from that bound (with Judgement::noisy: 1 from
/// it); nothing if no number of up to 10,000 would do.
std::optional<std::size_t> pairs_needed(const Threshold& threshold, const Ratio& ratio,
                                        std::size_t pairs);

}  // namespace offload::report
