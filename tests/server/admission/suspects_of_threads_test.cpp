#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "tests/server/fixtures/io_threads_fixture.hpp"

/// Requests that were in a channel when its worker was lost.
namespace offload::server {
namespace {

using comch::WorkerLoss;
using protocol::Refusal;
using support::bytes_of;
using test::error;
using test::response;
using test::send_request;

class SuspectsOfThreads : public test::IoThreadsFixture {};

TEST_F(SuspectsOfThreads, AreRetriedOneByOneBeforeAnythingElse) {
  open();
  Client& one = connect();
  Client& other = connect();
  for (const char* text : {"1st", "2nd"}) send_request(one.socket, bytes_of(text));
  send_request(other.socket, bytes_of("3rd"));
  turn();
  ASSERT_TRUE(worker().has_request());
  lose();
  attach();
  ask(other, "4th");
  expect_alone(one, "ts1");
  expect_alone(one, "dn2");
  expect_alone(other, "dr3");
  for (const char* text : {"5th", "6th"}) send_request(one.socket, bytes_of(text));
  turn();
  EXPECT_GE(worker().serve_all(), 1);
  EXPECT_EQ(next(other), response(bytes_of("ht4")));
  (void)worker().serve_all();  // that is where they did not come at once
  EXPECT_EQ(next(one), response(bytes_of("ht5")));
  EXPECT_EQ(next(one), response(bytes_of("ht6")));
}

TEST_F(SuspectsOfThreads, TheCulpritIsRefusedAndNobodyElse) {
  open();
  Client& before = connect(1);
  Client& culprit = connect(2);
  Client& behind = connect(3);
  ask(before, "before");
  for (int i = 0; i < 3; ++i) ask(culprit, "fatal");
  ask(behind, "behind");
  lose();
  attach();
  expect_alone(before, "erofeb");
  ASSERT_TRUE(worker().has_request());  // the culprit's
  lose();
  EXPECT_EQ(next(culprit), std::nullopt);
  attach();
  ASSERT_TRUE(worker().has_request());
  lose();
  EXPECT_EQ(next(culprit), error(Refusal::worker_failed));
  EXPECT_TRUE(ended(culprit));
  attach();
  expect_alone(behind, "dniheb");
  EXPECT_FALSE(worker().has_request());

  EXPECT_TRUE(waits(2));
  EXPECT_FALSE(waits(1) || waits(3));
  EXPECT_EQ(metrics_->culprits.value(), 1U);
  EXPECT_EQ(metrics_->refused[static_cast<std::size_t>(Refusal::worker_failed)].value(), 1U);
  EXPECT_TRUE(log_.has("client 2, 0.0.0.2:7: three workers were lost")) << log_.text();
  EXPECT_NE(events_->to_json().dump().find("client 2, 0.0.0.2:7: three workers"),
            std::string::npos);
}

TEST_F(SuspectsOfThreads, TheFirstLossBlamesNobody) {
  open();
  Client& client = connect();
  ask(client, "alone");
  lose();
  attach();
  expect_alone(client, "enola");
  ask(client, "again");
  lose();  // as well, since it is another request
  attach();
  expect_alone(client, "niaga");
  EXPECT_EQ(metrics_->culprits.value(), 0U);
}

TEST_F(SuspectsOfThreads, ACulpritThatHasLeftWaitsAllTheSame) {
  open();
  Client& culprit = connect(2);
  ask(culprit, "fatal");
  lose();
  culprit.socket.reset();
  for (int i = 0; i < 2; ++i) {
    EXPECT_FALSE(waits(2));
    attach();
    ASSERT_TRUE(worker().has_request());
    lose();
  }
  EXPECT_TRUE(waits(2));
  EXPECT_EQ(threads_[0]->client_count(), 0U);
}

// Its process may have been stopped, or its machine is gone: that may happen to another one too.
TEST_F(SuspectsOfThreads, AWorkerThatFellSilentIsNoReasonButTheFourthIs) {
  open();
  Client& client = connect();
  ask(client, "request");
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(next(client), std::nullopt);
    ASSERT_TRUE(worker().has_request()) << i;
    lose(WorkerLoss::given_up);
    if (i != 3) attach();
  }
  EXPECT_EQ(next(client), error(Refusal::worker_failed));
  EXPECT_FALSE(waits(1));
  attach();
  ask(client, "another");
  EXPECT_TRUE(worker().serve());
  EXPECT_EQ(next(client), response(bytes_of("rehtona")));
}

TEST_F(SuspectsOfThreads, WithoutAWorkerForTooLongAllAreRefused) {
  open();
  Client& client = connect();
  for (const char* text : {"1", "2", "3"}) ask(client, text);
  lose();
  attach();
  ASSERT_TRUE(worker().has_request());
  lose(WorkerLoss::given_up);
  threads_[0]->set_expired(true);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(next(client), error(Refusal::worker_unavailable)) << i;
  attach();
  threads_[0]->set_expired(false);
  EXPECT_FALSE(worker().has_request());
  ask(client, "4");
  EXPECT_TRUE(worker().serve());
  EXPECT_EQ(next(client), response(bytes_of("4")));
}

// A worker serves the channels of both threads, so a request that is alone in one may not be alone
// with it.
TEST_F(SuspectsOfThreads, OneThreadRetriesWhileTheOtherWaits) {
  open(2);
  Client& one = connect(1, 0);
  Client& other = connect(2, 1);
  ask(one, "one");
  ask(other, "other");
  lose();
  attach();
  ASSERT_TRUE(worker(0).has_request());
  EXPECT_FALSE(worker(1).has_request());
  expect_alone(one, "eno", 0);
  expect_alone(other, "rehto", 1);
}

TEST_F(SuspectsOfThreads, NewRequestsOfOtherThreadsWaitToo) {
  open(2);
  Client& one = connect(1, 0);
  Client& other = connect(2, 1);
  ask(one, "one");
  lose();
  ask(other, "other");
  for (int i = 0; i < 2; ++i) {
    attach();
    ASSERT_TRUE(worker(0).has_request());
    EXPECT_FALSE(worker(1).has_request());
    lose();
  }
  EXPECT_EQ(next(one), error(Refusal::worker_failed));
  attach();
  EXPECT_TRUE(worker(1).serve());
  EXPECT_EQ(next(other), response(bytes_of("rehto")));
}

// Thousands of slow requests, one by one, would keep the channel closed for a minute.
TEST_F(SuspectsOfThreads, GoTogetherAfterSomeTimeUntilAnotherWorkerIsLost) {
  set_times({.settle = {}, .longest_wait = std::chrono::hours(1), .longest_alone = {}});
  open();
  Client& client = connect();
  for (const char* text : {"1st", "2nd", "3rd"}) ask(client, text);
  lose();
  attach();
  ask(client, "4th");
  EXPECT_TRUE(worker().serve());
  EXPECT_TRUE(worker().has_request());
  EXPECT_EQ(next(client), response(bytes_of("ts1")));
  lose();
  EXPECT_EQ(metrics_->culprits.value(), 0U);
  attach();
  for (const char* text : {"dn2", "dr3", "ht4"}) expect_alone(client, text);
}

// The losses count as one, like those of a process with three attachments.
TEST_F(SuspectsOfThreads, AWorkerThatEndsRightAfterAnotherIsNoReason) {
  set_times({.settle = std::chrono::hours(1),
             .longest_wait = std::chrono::hours(2),
             .longest_alone = std::chrono::hours(2)});
  open();
  Client& client = connect();
  ask(client, "request");
  attach();
  lose_worker(1);
  ASSERT_TRUE(worker().has_request());  // at once, for a loss more makes it no culprit
  attach();
  lose_worker(2);
  EXPECT_FALSE(worker().has_request());
  lose();
  EXPECT_EQ(metrics_->culprits.value(), 0U);
  EXPECT_EQ(next(client), std::nullopt);
  EXPECT_FALSE(client.received.ended);
}

TEST_F(SuspectsOfThreads, ARequestIsNoCulpritOnceAnotherThreadHasGoneOn) {
  set_times({.settle = {}, .longest_wait = {}, .longest_alone = std::chrono::hours(1)});
  open(2);
  Client& one = connect(1, 0);
  Client& other = connect(2, 1);
  ask(one, "one");
  lose();
  attach();
  lose();
  attach();
  ASSERT_TRUE(worker(0).has_request());
  ask(other, "other");
  ASSERT_TRUE(worker(1).has_request());
  lose();
  EXPECT_EQ(metrics_->culprits.value(), 0U);
  attach();
  for (int i = 0; i < 2; ++i) {
    (void)worker(0).serve_all();
    (void)worker(1).serve_all();
    turn();
  }
  EXPECT_EQ(next(one), response(bytes_of("eno")));
  EXPECT_EQ(next(other), response(bytes_of("rehto")));
}

TEST_F(SuspectsOfThreads, AreNotAloneWithAWorkerThatServesAnotherThread) {
  for (const bool waits : {true, false}) {
    if (!waits)
      set_times({.settle = {}, .longest_wait = {}, .longest_alone = std::chrono::hours(1)});
    threads_.clear();
    channels_.clear();
    attachments_.clear();
    open(2);
    Client& one = connect(1, 0);
    Client& other = connect(2, 1);
    attach();
    threads_[0]->select_worker(1);
    turn();
    ask(one, "one");
    ask(other, "other");
    threads_[0]->select_worker(2);
    lose_worker(1);
    ASSERT_TRUE(worker(1).has_request());
    EXPECT_NE(worker(0).has_request(), waits);
    if (waits) {
      expect_alone(other, "rehto", 1);
      expect_alone(one, "eno", 0);
    } else {
      lose();
      EXPECT_EQ(metrics_->culprits.value(), 0U);
    }
  }
}

}  // namespace
}  // namespace offload::server
