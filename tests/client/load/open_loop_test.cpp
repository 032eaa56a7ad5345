#include <gtest/gtest.h>

#include "net/socket.hpp"
#include "tests/client/load/load_fixture.hpp"

/// A load thread whose requests become due by the clock.
namespace offload::client {
namespace {

TEST(OpenLoop, RequestsAreSentThoughNothingIsAnswered) {
  const auto pool = hello_pool();
  RunningLoad running(open_plan(1000, 20, 128), pool);
  Bytes olleh;
  for (int i = 0; i < 20; ++i) olleh = reversed(running.server().read_request());
  for (int i = 0; i < 20; ++i) running.server().respond(olleh);
  const auto& seen = running.finish();
  EXPECT_EQ(running.fault(), "");
  EXPECT_EQ(seen.valid, 20U);
  EXPECT_EQ(seen.due, 20U);
  EXPECT_EQ(seen.response.count(), 20U);
  // The first was due 19 ms before the last was sent, and answered after that.
  EXPECT_GE(seen.response.max(), 19ms);
}

// A full window holds requests back. Their response time counts from when they were due, their
// service time from when they were sent.
TEST(OpenLoop, WhatWaitsForRoomHasALongResponseTime) {
  const auto pool = hello_pool();
  RunningLoad running(open_plan(1000, 50, 1), pool);
  const Bytes olleh = reversed(running.server().read_request());
  std::this_thread::sleep_for(100ms);  // all 50 are due by now
  EXPECT_FALSE(running.server().has_unread());
  running.server().respond(olleh);
  for (int i = 1; i < 50; ++i) {
    ASSERT_EQ(running.server().read_request().size(), 5U);
    running.server().respond(olleh);
  }
  const auto& seen = running.finish();
  EXPECT_EQ(seen.valid, 50U);
  EXPECT_GE(seen.response.percentile(0.1), 50ms);
  EXPECT_GE(seen.response.min(), 50ms);  // the last was due at 49 ms, and answered after 100 ms
  EXPECT_LT(seen.service.percentile(0.5), seen.response.min());
}

TEST(OpenLoop, AtTheEndWhatFoundNoRoomIsCounted) {
  const auto pool = hello_pool();
  LoadPlan plan = open_plan(100, 0, 4);
  plan.duration = 500ms;
  RunningLoad running(plan, pool);
  Bytes olleh;
  for (int i = 0; i < 4; ++i) olleh = reversed(running.server().read_request());
  std::this_thread::sleep_for(600ms);
  for (int i = 0; i < 4; ++i) running.server().respond(olleh);
  const auto& seen = running.finish();
  EXPECT_EQ(running.fault(), "");
  EXPECT_EQ(seen.due, 50U);
  EXPECT_EQ(seen.valid, 4U);
  EXPECT_EQ(seen.never_sent, 46U);
  EXPECT_EQ(seen.unfinished, 50U);
  EXPECT_EQ(seen.unfinished_age.count(), 50U);
  EXPECT_EQ(seen.valid_after_end, 4U);
}

// A connection that broke while it had room for requests is given no more of them. The second is
// due after 5 s, by when a busy machine has seen the break as well.
TEST(OpenLoop, AConnectionThatIsOverSendsNothing) {
  const auto pool = random_pool(1U << 20, Service::echo);
  RunningLoad running(open_plan(0.2, 100, 4), pool);
  running.server().read_request();
  running.server().close();
  const auto& seen = running.finish();
  EXPECT_NE(running.fault().find("the server closed the connection"), std::string::npos);
  EXPECT_EQ(seen.sent, 1U);
}

TEST(OpenLoop, AScheduleSaysTheSizes) {
  const std::vector<ScheduledRequest> schedule = {{0s, 1}, {1ms, 0}, {2ms, 1}};
  const auto pool = RequestPool::of_sizes({{3, 1}, {1000, 1}}, {}, Service::reverse);
  LoadPlan plan = plan_of(1'000'000, 8);
  plan.arrivals = Arrivals::replay(schedule, 0, 1);
  RunningLoad running(plan, pool);
  for (const std::size_t size : {1000U, 3U, 1000U}) {
    const auto request = running.server().read_request();
    EXPECT_EQ(request.size(), size);
    running.server().respond(reversed(request));
  }
  EXPECT_EQ(running.finish().valid, 3U);
}

TEST(OpenLoop, WithoutAScheduleSizesAreChosenByTheirWeights) {
  const auto pool = RequestPool::of_sizes({{3, 1}, {1000, 1}}, {}, Service::reverse);
  RunningLoad running(open_plan(10'000, 100, 4), pool);
  const int short_ones = running.answer(100, 3);
  EXPECT_GT(short_ones, 25);
  EXPECT_LT(short_ones, 75);
  EXPECT_EQ(running.finish().valid, 100U);
}

TEST(OpenLoop, EveryRequestIsLogged) {
  const auto pool = hello_pool();
  RequestLog log;
  const Target nobody;
  RunningLoad running(open_plan(1000, 10, 4), pool, nobody, &log);
  running.answer_until_ended();
  const auto& seen = running.finish();
  const auto chunks = log.take();
  ASSERT_EQ(chunks.size(), 1U);
  ASSERT_EQ(chunks[0].size(), 10U);
  for (std::size_t i = 0; i < 10; ++i) {
    const RequestRecord& record = chunks[0][i];
    EXPECT_LE(record.intended, record.sent);
    EXPECT_LE(record.sent, record.done);
    EXPECT_EQ(record.bytes, 5U);
    EXPECT_FALSE(record.error);
    EXPECT_EQ(record.intended - chunks[0][0].intended, i * 1ms);
  }
  EXPECT_EQ(seen.valid, 10U);
}

// They wait for the window of one, so the time since their sending is short.
TEST(OpenLoop, TheDeadlineBeginsWhenARequestIsDue) {
  const auto pool = hello_pool();
  LoadPlan plan = open_plan(1000, 20, 1);
  plan.deadline = 50ms;
  plan.stop_on_error = false;
  RunningLoad running(plan, pool);
  const Bytes olleh = reversed(running.server().read_request());
  std::this_thread::sleep_for(100ms);  // the last is due after 19 ms
  for (int i = 0; i < 20; ++i) {
    if (i != 0) running.server().read_request();
    running.server().respond(olleh);
  }
  const auto& seen = running.finish();
  EXPECT_EQ(seen.errors.of(ErrorKind::late), 20U);
  EXPECT_EQ(seen.valid, 0U);
}

TEST(OpenLoop, AConnectionIsMadeAnewAfterItsRequests) {
  const auto pool = hello_pool();
  const core::Fd listener = net::listen_tcp(net::resolve("127.0.0.1", 0).front(), 8);
  const Target target{{net::local_address(listener.get())}, {}};
  LoadPlan plan = open_plan(1000, 4, 8);
  plan.reconnect_every = 2;
  RunningLoad running(plan, pool, target);
  EXPECT_EQ(running.answer(2, 5), 2);
  FakeServer again = accept_from(listener);
  for (int i = 0; i < 2; ++i) again.respond(reversed(again.read_request()));
  EXPECT_EQ(running.fault(), "");
  EXPECT_EQ(running.finish().valid, 4U);
  EXPECT_EQ(running.finish().connect.count(), 1U);
}

}  // namespace
}  // namespace offload::client
