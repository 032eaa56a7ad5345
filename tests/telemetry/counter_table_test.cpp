#include "telemetry/counter_table.hpp"

#include <gtest/gtest.h>

namespace offload::telemetry {
namespace {

struct Counts {
  core::Counter requests;
  core::Counter in_flight;
  core::Counter busy;
  core::Counter longest;
  core::Counter hidden;
};

constexpr std::array<NamedCounter<Counts>, 5> kTable{{
    {"requests_total", "Requests.", CounterKind::count, "requests", &Counts::requests},
    {"in_flight", "In flight.", CounterKind::gauge, "in_flight", &Counts::in_flight},
    {"busy_seconds_total", "Busy.", CounterKind::seconds, "busy_ns", &Counts::busy},
    {"longest_seconds", "Longest.", CounterKind::longest_seconds, "longest_ns", &Counts::longest},
    {"hidden_total", "Hidden.", CounterKind::count, nullptr, &Counts::hidden},
}};

class CounterTable : public ::testing::Test {
 protected:
  CounterTable() {
    one_.requests.add(3);
    one_.in_flight.set(2);
    one_.busy.set(1'500'000'000);
    one_.longest.set(750'000'000);
    one_.hidden.add(7);
    other_.requests.add(4);
    other_.in_flight.set(1);
    other_.busy.set(500'000'000);
    other_.longest.set(250'000'000);
  }

  Counts one_;
  Counts other_;
};

TEST_F(CounterTable, APageHasEachCounterInItsUnit) {
  Exposition page(false);
  collect(page, {}, kTable, one_);
  collect(page, {}, kTable, other_);
  EXPECT_EQ(page.text(),
            "# HELP requests_total Requests.\n# TYPE requests_total counter\nrequests_total 7\n"
            "# HELP in_flight In flight.\n# TYPE in_flight gauge\nin_flight 3\n"
            "# HELP busy_seconds_total Busy.\n# TYPE busy_seconds_total counter\n"
            "busy_seconds_total 2\n"
            "# HELP longest_seconds Longest.\n# TYPE longest_seconds gauge\nlongest_seconds 0.75\n"
            "# HELP hidden_total Hidden.\n# TYPE hidden_total counter\nhidden_total 7\n");
}

TEST_F(CounterTable, AnObjectHasTheCountersOfAllOwners) {
  nlohmann::json object;
  collect(object, kTable, one_);
  collect(object, kTable, other_);
  EXPECT_EQ(object, (nlohmann::json{{"requests", 7},
                                    {"in_flight", 3},
                                    {"busy_ns", 2'000'000'000},
                                    {"longest_ns", 750'000'000}}));
}

}  // namespace
}  // namespace offload::telemetry
