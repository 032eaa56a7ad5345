#pragma once

#include <algorithm>
#include <cstdint>

#include "apps/client/load/errors.hpp"
#include "core/clock.hpp"
#include "metrics/latency_histogram.hpp"

namespace offload::client {

/// The counts of an Interval.
struct IntervalCounts {
  core::TimePoint begin{};
  core::TimePoint end{};
  core::TimePoint last_answer{};  ///< when the last response was read; 0 if there is none
  std::uint64_t sent = 0;         ///< requests, including a batch that was sent in part
  std::uint64_t answered = 0;     ///< responses received, right or wrong
  std::uint64_t valid = 0;        ///< right responses, in time
  std::uint64_t tx_bytes = 0;     ///< on the wire, frame headers included
  std::uint64_t rx_bytes = 0;
  std::uint64_t rx_error_bytes = 0;  ///< of these, payloads of error frames
  // Of these, what came after the end of sending: the rate of a load with a duration is without it.
  std::uint64_t answered_after_end = 0;
  std::uint64_t valid_after_end = 0;
  std::uint64_t rx_bytes_after_end = 0;
  ErrorCounts errors;
  // Over UDP:
  std::uint64_t lost = 0;          ///< requests without an answer until their last time-out
  std::uint64_t duplicates = 0;    ///< answers to requests that were answered
  std::uint64_t late_answers = 0;  ///< answers to requests that are lost
  std::uint64_t sent_again = 0;    ///< datagrams
  double in_flight_ns = 0;         ///< the integral of the number of requests in flight over time
  // An open loop's, of requests that were due after the warm-up:
  std::uint64_t due = 0;           ///< whose intended time came
  std::uint64_t noticed_late = 0;  ///< of these, noticed later than the tolerance: by the client
  /// Noticed in time, but sent later than the tolerance, or not sent although it had passed.
  std::uint64_t held_back = 0;
  std::uint64_t never_sent = 0;  ///< there was no room for them until the end
  std::uint64_t unfinished = 0;  ///< without a response when the last one became due
};

/// The figures of a load thread for about a second. Each event of a request counts when it happens:
/// its sending, its response, its loss.
struct Interval : IntervalCounts {
  metrics::LatencyHistogram service;   ///< of right responses, from the send; late ones too
  metrics::LatencyHistogram response;  ///< from the intended time; an open loop's
  metrics::LatencyHistogram lag;       ///< from the intended time until the client noticed it
  metrics::LatencyHistogram connect;   ///< of connections made, TLS included
  /// For the unfinished requests: the response time, or the age of one that was given up unsent.
  metrics::LatencyHistogram unfinished_age;

  /// Returns whether nothing happened and nothing was awaited.
  [[nodiscard]] bool is_empty() const noexcept {
    return sent == 0 && answered == 0 && due == 0 && never_sent == 0 && unfinished == 0 &&
           errors.total() == 0 && connect.count() == 0 && in_flight_ns == 0;
  }

  /// Adds the counts of `other`, and spans its time too.
  void merge(const Interval& other) noexcept {
    if (other.end > core::TimePoint{}) {
      begin = end > core::TimePoint{} ? std::min(begin, other.begin) : other.begin;
      end = std::max(end, other.end);
    }
    last_answer = std::max(last_answer, other.last_answer);
    sent += other.sent;
    answered += other.answered;
    valid += other.valid;
    tx_bytes += other.tx_bytes;
    rx_bytes += other.rx_bytes;
    rx_error_bytes += other.rx_error_bytes;
    answered_after_end += other.answered_after_end;
    valid_after_end += other.valid_after_end;
    rx_bytes_after_end += other.rx_bytes_after_end;
    errors.merge(other.errors);
    lost += other.lost;
    duplicates += other.duplicates;
    late_answers += other.late_answers;
    sent_again += other.sent_again;
    in_flight_ns += other.in_flight_ns;
    due += other.due;
    noticed_late += other.noticed_late;
    held_back += other.held_back;
    never_sent += other.never_sent;
    unfinished += other.unfinished;
    service.merge(other.service);
    response.merge(other.response);
    lag.merge(other.lag);
    connect.merge(other.connect);
    unfinished_age.merge(other.unfinished_age);
  }

  void clear() noexcept {
    static_cast<IntervalCounts&>(*this) = {};
    service.clear();
    response.clear();
    lag.clear();
    connect.clear();
    unfinished_age.clear();
  }
};

}  // namespace offload::client
