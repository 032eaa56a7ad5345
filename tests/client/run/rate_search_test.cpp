#include "apps/client/run/rate_search.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <random>

#include "core/error.hpp"

namespace offload::client {
namespace {

constexpr double kLatencyBound = 500;  // µs

SearchLimits search_limits(double first_rate = 1000) {
  return {.first_rate = first_rate, .lowest = 1, .highest = 1e6, .bound_us = kLatencyBound};
}

/// A server whose latency jumps at `knee`.
Measured step_at(double knee, double rate) {
  const bool within = rate <= knee;
  return {std::min(rate, knee), within ? 40.0 : 50'000.0, within, true};
}

Measured answer(bool meets) {
  return {1, meets ? kLatencyBound : kLatencyBound + 1, true, true};
}

std::vector<double> rates(const SearchResult& result) {
  std::vector<double> offered;
  for (const SearchStep& step : result.steps) offered.push_back(step.offered_per_second);
  return offered;
}

TEST(RateSearch, FindsTheKneeFromBelowAndAbove) {
  for (const double knee : {1.5, 37.0, 999.0, 1000.0, 1001.0, 123'456.0, 999'999.0}) {
    for (const double first : {1.0, 1000.0, 1e6}) {
      const SearchResult result =
          search_rate(search_limits(first), [&](double rate) { return step_at(knee, rate); });
      ASSERT_EQ(result.end, SearchEnd::found) << result.reason;
      EXPECT_EQ(result.reason, "");
      EXPECT_LE(*result.rate, knee);
      EXPECT_GT(*result.rate * 1.031, knee);
      EXPECT_EQ(*result.low, *result.rate);
      EXPECT_GT(*result.high, knee);
      EXPECT_LE(*result.high / *result.low, 1.03 + 1e-6);
      EXPECT_LE(result.steps.size(), 60U);
    }
  }
}

TEST(RateSearch, PrecisionIsTheCallers) {
  SearchLimits fine = search_limits();
  fine.precision = 0.002;
  const SearchResult result = search_rate(fine, [](double rate) { return step_at(5000, rate); });
  EXPECT_NEAR(*result.rate, 5000, 10);
}

TEST(RateSearch, DoublesThenBisectsAndConfirmsBothEnds) {
  SearchLimits coarse = search_limits();
  coarse.precision = 0.2;
  const SearchResult result = search_rate(coarse, [](double rate) { return step_at(2900, rate); });
  const double middle = 2000 * std::sqrt(2);
  const double upper = std::sqrt(middle * 4000);
  const std::vector<double> expected{1000,   1000,  2000,  2000,  4000,  4000,  middle,
                                     middle, upper, upper, upper, upper, middle};
  ASSERT_EQ(result.steps.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(result.steps[i].offered_per_second, expected[i], 1e-6) << i;
    EXPECT_EQ(result.steps[i].meets, expected[i] <= 2900) << i;
  }
  EXPECT_EQ(result.steps[8].repeat, 0U);
  EXPECT_EQ(result.steps[11].repeat, 3U);
  EXPECT_EQ(result.steps[12].repeat, 2U);
  EXPECT_EQ(result.steps[12].measured.achieved_per_second, *result.rate);
}

TEST(RateSearch, LooksNoHigherAndNoLowerThanAsked) {
  SearchLimits narrow = search_limits();
  narrow.lowest = 300;
  narrow.highest = 5000;
  const SearchResult high = search_rate(narrow, [](double) { return answer(true); });
  EXPECT_EQ(high.end, SearchEnd::highest_meets);
  EXPECT_EQ(high.rate, 5000);
  EXPECT_EQ(high.high, std::nullopt);
  EXPECT_EQ(rates(high),
            (std::vector<double>{1000, 1000, 2000, 2000, 4000, 4000, 5000, 5000, 5000}));
  const SearchResult low = search_rate(narrow, [](double) { return answer(false); });
  EXPECT_EQ(low.end, SearchEnd::lowest_fails);
  EXPECT_EQ(low.rate, std::nullopt);
  EXPECT_EQ(low.high, 300);
  EXPECT_EQ(low.reason, "even 300 requests/s exceed the bound");
  EXPECT_EQ(rates(low), (std::vector<double>{1000, 1000, 500, 500, 300, 300, 300, 300}));
  narrow.lowest = narrow.highest = narrow.first_rate = 700;
  EXPECT_EQ(search_rate(narrow, [](double) { return answer(true); }).rate, 700);
}

/// Returns the result of a search at one rate only, with these measurements; later ones meet.
SearchResult judged(unsigned repeats, std::deque<Measured> script) {
  SearchLimits single = search_limits();
  single.lowest = single.highest = single.first_rate;
  single.repeats = repeats;
  return search_rate(single, [&](double) {
    if (script.empty()) return answer(true);
    const Measured next = script.front();
    script.pop_front();
    return next;
  });
}

TEST(RateSearch, TheMajorityDecidesAndNoMoreIsMeasured) {
  const Measured meets = answer(true);
  const Measured fails = answer(false);
  // The third step is the confirmation.
  EXPECT_EQ(judged(3, {meets, meets}).steps.size(), 3U);
  EXPECT_EQ(judged(3, {meets, fails, meets}).steps.size(), 4U);
  EXPECT_EQ(judged(1, {meets}).steps.size(), 2U);
  EXPECT_EQ(judged(5, {fails, fails, meets, meets, meets}).steps.size(), 6U);
  EXPECT_EQ(judged(2, {meets, meets}).steps.size(), 3U);
  // Both judgements of the lowest rate.
  EXPECT_EQ(judged(3, {fails, meets, fails, fails, fails}).end, SearchEnd::lowest_fails);
  EXPECT_EQ(judged(2, {fails, meets, fails}).end, SearchEnd::lowest_fails);
  EXPECT_EQ(judged(3, {fails, fails, meets, meets}).end, SearchEnd::highest_meets);
}

TEST(RateSearch, WhatTheServerDidNotKeepUpWithDoesNotMeetTheBound) {
  const Measured behind{900, 1, false, true};
  const SearchResult result = judged(3, {behind, behind, behind, behind});
  EXPECT_EQ(result.end, SearchEnd::lowest_fails);
  EXPECT_FALSE(result.steps[0].meets);
}

TEST(RateSearch, NotANumberDoesNotMeetTheBound) {
  const Measured odd{1000, std::numeric_limits<double>::quiet_NaN(), true, true};
  EXPECT_EQ(judged(3, {odd, odd, odd, odd}).end, SearchEnd::lowest_fails);
}

TEST(RateSearch, WhatIsNotTrustedIsRepeatedTwiceAtMost) {
  const Measured meets = answer(true);
  const Measured late{1000, 1, true, false};
  const SearchResult result = judged(3, {late, late, meets, late, meets, late, late, meets});
  EXPECT_EQ(result.rate, 1000);
  EXPECT_EQ(result.steps.size(), 8U);
  EXPECT_FALSE(result.steps[0].meets);
  const SearchResult limit = judged(3, {meets, late, late, late});
  EXPECT_EQ(limit.end, SearchEnd::client_late);
  EXPECT_EQ(limit.rate, std::nullopt);
  EXPECT_EQ(limit.steps.size(), 4U);
  EXPECT_EQ(limit.reason, "the client is the limit: it was late 3 times at 1000 requests/s");
}

TEST(RateSearch, TooFewRequestsAreNoReasonToLookLower) {
  const Measured few{.achieved_per_second = 1, .too_few = true};
  const SearchResult result = judged(3, {few, few, few});
  EXPECT_EQ(result.end, SearchEnd::too_few);
  EXPECT_EQ(result.rate, std::nullopt);
  EXPECT_EQ(result.steps.size(), 3U);
  EXPECT_EQ(result.reason.find("too few requests for a verdict at 1000 requests/s"), 0U)
      << result.reason;
  EXPECT_EQ(judged(3, {few, few, answer(true), answer(true)}).end, SearchEnd::highest_meets);
}

TEST(RateSearch, AClientThatIsTheLimitLeavesWhatWasKnown) {
  const SearchResult result = search_rate(search_limits(), [](double rate) {
    return Measured{rate, 10, true, rate < 5000};
  });
  EXPECT_EQ(result.end, SearchEnd::client_late);
  EXPECT_EQ(result.rate, std::nullopt);
  EXPECT_EQ(result.low, 4000);
  EXPECT_EQ(result.high, std::nullopt);
}

TEST(RateSearch, StopsWhenTheCallbackSaysSo) {
  std::size_t whole = 1;
  for (std::size_t most = 0; most < whole; ++most) {
    std::size_t count = 0;
    const auto measure = [&](double rate, std::size_t until) {
      return count++ == until ? std::nullopt : std::optional(step_at(5000, rate));
    };
    whole =
        search_rate(search_limits(), [&](double rate) { return measure(rate, 1000); }).steps.size();
    count = 0;
    const SearchResult result =
        search_rate(search_limits(), [&](double rate) { return measure(rate, most); });
    EXPECT_EQ(result.end, SearchEnd::interrupted);
    EXPECT_EQ(result.reason, "the search was interrupted");
    EXPECT_EQ(result.rate, std::nullopt);
    EXPECT_EQ(result.steps.size(), most);
  }
  EXPECT_GT(whole, 10U);
}

/// The result of a search of a server that is slower, by a factor, from the confirmation on.
SearchResult slower_at_the_end(const SearchResult& steady, double knee, double factor) {
  std::size_t count = 0;
  return search_rate(search_limits(), [&](double rate) {
    return step_at(++count < steady.steps.size() ? knee : *steady.rate * factor, rate);
  });
}

TEST(RateSearch, ARateThatIsNotConfirmedIsLoweredByAStep) {
  for (const double knee : {700.0, 5000.0, 12'345.0, 77'777.0}) {
    const SearchResult steady =
        search_rate(search_limits(), [&](double rate) { return step_at(knee, rate); });
    for (const unsigned steps : {1U, 2U, 5U}) {
      const SearchResult result = slower_at_the_end(steady, knee, std::pow(1.03, 0.5 - steps));
      EXPECT_EQ(result.end, SearchEnd::found);
      EXPECT_NEAR(*result.rate * std::pow(1.03, steps) / *steady.rate, 1, 1e-6);
      EXPECT_LE(*result.high / *result.low, 1.03 + 1e-6);
      // Two confirmations instead of one, two measurements at each step down, and the
      // confirmation; below the first step down, also that of the upper end, which then is
      // that step.
      const unsigned upper = steps > 1 ? 2 : 0;
      EXPECT_EQ(result.steps.size(), steady.steps.size() + 1 + 2 * steps + upper + 1);
    }
  }
}

TEST(RateSearch, ARateThatFailedByAccidentIsFoundOut) {
  // The two measurements at 4000, far below the knee, were disturbed.
  for (const std::size_t disturbed : {0U, 2U, 4U}) {
    std::size_t count = 0;
    const SearchResult result = search_rate(search_limits(), [&](double rate) {
      const bool accident = count >= disturbed && count < disturbed + 2;
      ++count;
      return accident ? answer(false) : step_at(70'000, rate);
    });
    EXPECT_GT(*result.rate * 1.031, 70'000) << disturbed;
    EXPECT_LE(*result.rate, 70'000);
  }
}

TEST(RateSearch, EndsWhateverItIsTold) {
  std::size_t unsettled = 0;
  for (unsigned seed = 0; seed < 2000; ++seed) {
    std::mt19937_64 random(seed);
    const double probability = std::uniform_real_distribution(0.0, 1.0)(random);
    std::bernoulli_distribution meets(probability);
    std::bernoulli_distribution trusted(0.9);
    const SearchResult result = search_rate(search_limits(), [&](double) {
      Measured measured = answer(meets(random));
      measured.trusted = trusted(random);
      return measured;
    });
    EXPECT_LE(result.steps.size(), kMostMeasurements);
    EXPECT_EQ(result.rate.has_value(), result.reason.empty());
    if (result.end == SearchEnd::unsettled) ++unsettled;
  }
  EXPECT_LT(unsettled, 200U);
}

TEST(RateSearch, RefusesLimitsThatMakeNoSense) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto refused = [](auto change) {
    SearchLimits wrong = search_limits();
    change(wrong);
    EXPECT_THROW(search_rate(wrong, [](double) { return answer(true); }), core::Error);
  };
  for (const double value : {0.0, -1.0, 2000.0, nan}) {
    refused([&](SearchLimits& wrong) { wrong.lowest = value; });
  }
  for (const double value : {0.5, 2e6, nan}) {
    refused([&](SearchLimits& wrong) { wrong.first_rate = value; });
  }
  for (const double value : {999.0, std::numeric_limits<double>::infinity(), nan}) {
    refused([&](SearchLimits& wrong) { wrong.highest = value; });
  }
  for (const double value : {0.0, nan}) {
    refused([&](SearchLimits& wrong) { wrong.bound_us = value; });
  }
  for (const double value : {0.0, 1.5, nan}) {
    refused([&](SearchLimits& wrong) { wrong.precision = value; });
  }
  for (const unsigned value : {0U, 100U}) {
    refused([&](SearchLimits& wrong) { wrong.repeats = value; });
  }
  SearchLimits widest = search_limits();
  widest.precision = 1;
  widest.repeats = 99;
  widest.lowest = widest.first_rate = widest.highest;
  EXPECT_TRUE(search_rate(widest, [](double) { return answer(true); }).rate);
}

}  // namespace
}  // namespace offload::client
