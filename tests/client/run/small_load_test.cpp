// The verdicts on loads of few requests, for servers of a known kind, by simulated clocks.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "apps/client/load/pacer.hpp"
#include "apps/client/run/run_result.hpp"

namespace offload::client {
namespace {

using namespace std::chrono_literals;
using Code = LoadVerdict::Code;
using core::Duration;
using core::TimePoint;

constexpr Duration kLength = 20s;
constexpr Duration kTolerance = 1ms;
constexpr std::uint64_t kMostRequests = 200;
constexpr std::uint32_t kMostThreads = 16;
const TimePoint kStart = TimePoint{} + 1h;
const TimePoint kEnd = kStart + kLength;

/// Returns the time that a server takes for request `number` of a thread; Duration::max() for no
/// response.
using Service = std::function<Duration(std::uint64_t number)>;

/// A load thread without sockets: like LoadThread, it sends due requests while its window has room.
class SimulatedThread {
 public:
  SimulatedThread(const Arrivals& arrivals, std::size_t window, Service service, Interval& interval)
      : pacer_(arrivals, {kStart, kStart, kEnd, kTolerance}, UINT64_MAX),
        window_(window),
        service_(std::move(service)),
        interval_(interval) {}

  void run() {
    while (std::min(next_due(), next_response()) < kEnd) {
      if (next_response() <= next_due()) {
        take_response();
      } else {
        notice(pacer_.next());
      }
    }
    pacer_.note_unfinished(in_flight_.size(), interval_);
    pacer_.close(kEnd, interval_);
    while (next_response() != TimePoint::max()) take_response();
  }

 private:
  struct Request {
    TimePoint intended;
    TimePoint sent;
    TimePoint response;
  };

  [[nodiscard]] TimePoint next_due() const {
    return pacer_.ended() ? TimePoint::max() : pacer_.next();
  }
  [[nodiscard]] std::vector<Request>::const_iterator earliest() const {
    return std::min_element(
        in_flight_.begin(), in_flight_.end(),
        [](const Request& left, const Request& right) { return left.response < right.response; });
  }
  [[nodiscard]] TimePoint next_response() const {
    return in_flight_.empty() ? TimePoint::max() : earliest()->response;
  }
  void notice(TimePoint now) {
    pacer_.notice(now, interval_);
    if (pacer_.ended()) pacer_.note_unfinished(in_flight_.size(), interval_);
    send(now);
  }
  void send(TimePoint now) {
    while (pacer_.due() > 0 && in_flight_.size() < window_) {
      const TimePoint intended = pacer_.take(now, interval_);
      const Duration time = service_(sent_++);
      in_flight_.push_back(
          {intended, now, time == Duration::max() ? TimePoint::max() : now + time});
    }
  }
  void take_response() {
    const Request request = *earliest();
    in_flight_.erase(earliest());
    interval_.service.record(request.response - request.sent);
    pacer_.record_response(request.response - request.intended, interval_);
    send(request.response);
  }

  Pacer pacer_;
  std::size_t window_;
  Service service_;
  Interval& interval_;
  std::uint64_t sent_ = 0;
  std::vector<Request> in_flight_;
};

/// Returns the code of the verdict on `requests` requests, at equal distances in kLength.
Code code_of(std::uint64_t requests, std::uint32_t threads, std::size_t window,
             const Service& service) {
  RunResult result;
  // The first request of a load of less than one is due after the end.
  const double rate = std::max(static_cast<double>(requests), 0.1) / core::to_seconds(kLength);
  for (std::uint32_t number = 0; number < threads; ++number) {
    const auto arrivals = Arrivals::constant(rate / threads, (number + 0.5) / rate);
    SimulatedThread(arrivals, window, service, *result.total).run();
  }
  EXPECT_EQ(result.total->due, requests);
  return judge_load(result.load_seen(rate, kTolerance)).code;
}

/// Compares the code with `expected(requests)`, for each number of threads, and of requests each
/// small one and some larger ones: few decide by single requests.
void expect_codes(std::size_t window, const Service& service,
                  const std::function<Code(std::uint64_t)>& expected) {
  for (std::uint32_t threads = 1; threads <= kMostThreads; ++threads) {
    for (std::uint64_t requests = 0; requests <= kMostRequests; requests += requests < 40 ? 1 : 8) {
      ASSERT_EQ(code_of(requests, threads, window, service), expected(requests))
          << requests << " requests by " << threads << " threads";
    }
  }
}

Code kept_up_if_any(std::uint64_t requests) {
  return requests == 0 ? Code::too_few : Code::kept_up;
}

TEST(SmallLoad, AServerThatAnswersAtOnceKeepsUp) {
  for (const std::size_t window : {1U, 100U}) {
    expect_codes(
        window, [](std::uint64_t) { return 1ms; }, kept_up_if_any);
  }
}

TEST(SmallLoad, ASlowServerWithoutAQueueKeepsUp) {
  expect_codes(
      1000, [](std::uint64_t) { return 700ms; }, kept_up_if_any);
}

TEST(SmallLoad, AServerThatNeverAnswersIsLate) {
  for (const std::size_t window : {1U, 1000U}) {
    expect_codes(
        window, [](std::uint64_t) { return Duration::max(); },
        [](std::uint64_t requests) { return requests < 2 ? Code::too_few : Code::server_late; });
  }
}

// The first is answered at once, and none after it, as by a server that stops.
TEST(SmallLoad, AServerThatStopsIsLate) {
  for (std::uint64_t requests = 3; requests <= kMostRequests; ++requests) {
    const auto stops = [](std::uint64_t number) { return number == 0 ? 1ms : Duration::max(); };
    ASSERT_EQ(code_of(requests, 1, 1000, stops), Code::server_late) << requests;
  }
}

TEST(SmallLoad, OneSlowResponseAtTheEndTellsNothingAmongFew) {
  for (std::uint64_t requests = 1; requests <= kMostRequests; ++requests) {
    const auto slow_at_last = [&](std::uint64_t number) {
      return number + 1 == requests ? Duration(5s) : Duration(1ms);
    };
    // One request alone is as slow as is usual for this server.
    const Code expected = requests > 1 && requests < 100 ? Code::too_few : Code::kept_up;
    ASSERT_EQ(code_of(requests, 1, 100, slow_at_last), expected) << requests;
  }
}

}  // namespace
}  // namespace offload::client
