#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

/// The search for the highest rate at which a server answers within a bound: only the algorithm.
/// The caller measures. For one thread.
namespace offload::client {

/// The measurement of requests offered at one rate.
struct Measured {
  double achieved_per_second = 0;  ///< responses; recorded, not judged
  double latency_us = 0;           ///< what the bound is about, such as a percentile
  bool kept_up = false;            ///< the server answered at the rate that was offered
  bool trusted = false;            ///< the client itself was not late: the figures are the server's
  bool too_few = false;            ///< not trusted, because there were too few requests
  bool held = true;                ///< there were enough latencies for latency_us
};

/// One measurement of a search.
struct SearchStep {
  double offered_per_second = 0;
  unsigned repeat = 0;  ///< how often this rate was measured before
  Measured measured;
  bool meets = false;  ///< it is trusted, the server kept up, and the latency is within the bound
};

struct SearchLimits {
  double first_rate = 0;  ///< requests a second: where the search begins
  double lowest = 0;      ///< requests a second: it looks no lower, and not higher than `highest`
  double highest = 0;
  double bound_us = 0;      ///< the highest latency that meets the bound
  double precision = 0.03;  ///< it ends when the rate is known up to this fraction; 0.001 to 1
  unsigned repeats = 3;     ///< a rate is judged by the majority of this number of measurements; 1
                            ///< to 99
};

/// How a search ended. The first two have a rate.
enum class SearchEnd : std::uint8_t {
  found,
  highest_meets,  ///< as far as it was asked to look
  lowest_fails,
  client_late,  ///< no measurement could be trusted: the client is the limit
  too_few,      ///< no measurement could be trusted: they had too few requests
  interrupted,  ///< by the callback
  unsettled,    ///< the measurements contradict each other
};

struct SearchResult {
  std::optional<double> rate;  ///< requests a second: the highest that meets the bound
  /// Where that is, as far as is known: a rate that met the bound, and the lowest one above it that
  /// did not.
  std::optional<double> low;
  std::optional<double> high;
  SearchEnd end = SearchEnd::unsettled;
  std::string reason;             ///< why there is no rate, in one line; empty if there is one
  std::vector<SearchStep> steps;  ///< in the order of time
};

/// A search measures no more often than this.
inline constexpr std::size_t kMostMeasurements = 250;

/// Measures at a rate (requests a second); nothing: the search must stop.
using Measure = std::function<std::optional<Measured>(double offered_per_second)>;

/// Doubles or halves the rate until it has one that meets the bound and one that does not, then
/// bisects. A rate meets the bound if the majority of its measurements does. Both ends are
/// confirmed: the upper one is judged again, because disturbances only ever make a server look
/// slower, and the rate found is measured once more, twice if that fails, and lowered by a step of
/// `precision` if both do. Throws core::Error if `limits` are out of range; exceptions of `measure`
/// pass through.
SearchResult search_rate(const SearchLimits& limits, const Measure& measure);

}  // namespace offload::client
