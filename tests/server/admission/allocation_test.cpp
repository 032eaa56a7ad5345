// A separate program, as its operator new fails at the allocations that a test selects.
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "tests/server/fixtures/io_threads_fixture.hpp"
#include "tests/support/operator_new.hpp"

namespace offload::server {
namespace {

using support::bytes_of;
using test::response;

class LossWithoutMemory : public test::IoThreadsFixture {
 protected:
  void SetUp() override {
    if (!support::kOwnOperatorNew) GTEST_SKIP() << "a sanitizer allocates";
  }
  /// Loses the worker; the thread's allocation `number` after that fails. Returns whether it made
  /// that many.
  bool lose_with_failure(int number) {
    threads_[0]->remove_worker(attachments_.back().id, comch::WorkerLoss::ended);
    threads_[0]->select_worker(0);
    support::allocations.fails_at = number;
    turn();
    return std::exchange(support::allocations.fails_at, 0) == 0;
  }
};

// Short requests, which are copied, and a long one, which stays in the channel's memory.
TEST_F(LossWithoutMemory, EachRequestIsAnsweredAllTheSame) {
  open();
  Client& one = connect(1);
  Client& other = connect(2);
  const std::string longest(1000, 'x');
  int number = 1;
  for (bool failed = true; failed; ++number) {
    ASSERT_LT(number, 100) << "each loss allocates more";
    for (const char* text : {"1st", "2nd"}) ask(one, text);
    ask(other, longest.c_str());
    failed = lose_with_failure(number);
    attach();
    const auto serve = [&] {
      (void)worker().serve_all();
      turn();
    };
    for (int i = 0; i < 3; ++i) serve();
    for (const char* reversed : {"ts1", "dn2"}) {
      EXPECT_EQ(next(one), response(bytes_of(reversed))) << number;
    }
    EXPECT_EQ(next(other), response(bytes_of(longest))) << number;
    EXPECT_FALSE(worker().has_request()) << number;
  }
  // Each of the three is an entry of a list, and the short ones have a copy.
  EXPECT_GE(number, 5);
}

// It was alone with the third worker: its client is refused, even without memory for the error.
TEST_F(LossWithoutMemory, TheCulpritIsRefused) {
  open();
  for (int number = 1, failed = 1; failed != 0; ++number) {
    ASSERT_LT(number, 100) << "each loss allocates more";
    const auto from = static_cast<std::uint32_t>(100 + number);
    Client& culprit = connect(from);
    ask(culprit, "fatal");
    lose();
    attach();
    lose();
    attach();
    ASSERT_TRUE(worker().has_request());
    failed = lose_with_failure(number) ? 1 : 0;
    EXPECT_EQ(next(culprit), test::error(protocol::Refusal::worker_failed)) << number;
    EXPECT_TRUE(ended(culprit)) << number;
    EXPECT_TRUE(waits(from)) << number;
    attach();
  }
}

}  // namespace
}  // namespace offload::server
