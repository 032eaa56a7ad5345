#pragma once

#include <span>

namespace offload::metrics {

/// An estimate from repeats, with its 95 % confidence interval.
struct Estimate {
  double middle = 0;
  double low = 0;
  double high = 0;
};

/// The values of two repeats that belong together, such as one after the other.
struct RepeatPair {
  double base = 0;
  double compared = 0;
};

/// The median of repeats. From 6 repeats on, its interval lies between two of them (order
/// statistics), which holds for every distribution: repeats are often skewed, as disturbances only
/// make them slower. Fewer cannot give 95 % in this way: 3 to 5 have Student's t of their
/// logarithms, which supposes that these are about normal (of the values themselves if one is not
/// positive). Fewer than 3 tell nothing: low and high are infinite. All have to be finite and
/// independent: a drift of the machine is not in the interval.
Estimate estimate_median(std::span<const double> values);

/// The median ratio `compared` / `base` of pairs. A drift that is slower than a pair cancels out.
/// Its interval is that of the median of the logarithms: order statistics from 6 pairs on,
/// Student's t for 3 to 5, which the skew that both sides share hardly disturbs. Wilcoxon's
/// signed-rank interval would be a third narrower for even noise; but one disturbed pair of ten
/// makes it many times as wide, and this one not at all. Fewer than 3 pairs tell nothing: low is 0
/// and high infinite. Throws core::Error (invalid_value) if a value is not finite and above 0.
Estimate estimate_ratio(std::span<const RepeatPair> pairs);

}  // namespace offload::metrics
