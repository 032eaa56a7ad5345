#include "apps/client/load/load_connection.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <set>

#include "tests/client/load/load_fixture.hpp"

namespace offload::client {
namespace {

TEST(LoadConnection, AllAnswered) {
  const auto pool = random_pool(40, Service::reverse);
  RunningLoad running(plan_of(1000, 16), pool);
  for (int i = 0; i < 1000; ++i)
    running.server().respond(reversed(running.server().read_request()));
  const auto& result = running.finish();
  EXPECT_EQ(running.fault(), "");
  EXPECT_EQ(result.sent, 1000U);
  EXPECT_EQ(result.answered, 1000U);
  EXPECT_EQ(result.valid, 1000U);
  EXPECT_EQ(result.tx_bytes, 52'000U);
  EXPECT_EQ(result.rx_bytes, 52'000U);
  EXPECT_EQ(result.service.count(), 1000U);
  expect_in_flight_as_served(result);
}

TEST(LoadConnection, ResponsesOneByteAtATime) {
  const auto pool = hello_pool();
  RunningLoad running(plan_of(20, 4), pool);
  for (int i = 0; i < 20; ++i) {
    const auto frame =
        protocol::make_frame(MessageId::client_response, reversed(running.server().read_request()));
    for (const std::byte& byte : frame) ASSERT_TRUE(running.server().write(std::span(&byte, 1)));
  }
  EXPECT_EQ(running.fault(), "");
  EXPECT_EQ(running.finish().valid, 20U);
}

TEST(LoadConnection, EmptyRequestsAndResponses) {
  const auto pool = random_pool(0, Service::echo);
  RunningLoad running(plan_of(10, 3), pool);
  for (int i = 0; i < 10; ++i) running.server().respond(running.server().read_request());
  EXPECT_EQ(running.fault(), "");
  EXPECT_EQ(running.finish().valid, 10U);
}

// More than the socket takes at once: partial writes must go on where they stopped.
TEST(LoadConnection, LargeRequestsArriveWhole) {
  constexpr std::size_t kSize = std::size_t{3} << 20;
  const auto pool = random_pool(kSize, Service::echo);
  RunningLoad running(plan_of(12, 4), pool);
  for (int i = 0; i < 12; ++i) {
    const auto request = running.server().read_request();
    ASSERT_EQ(request.size(), kSize);
    running.server().respond(request);
  }
  EXPECT_EQ(running.fault(), "");
  const auto& result = running.finish();
  EXPECT_EQ(result.valid, 12U);
  EXPECT_EQ(result.tx_bytes, 12 * (kSize + protocol::kFrameHeaderSize));
  EXPECT_EQ(result.rx_bytes, result.tx_bytes);
}

TEST(LoadConnection, TheWindowIsRefilledAndNeverExceeded) {
  const auto pool = hello_pool();
  RunningLoad running(plan_of(100, 4), pool);
  Bytes olleh;
  for (int i = 0; i < 4; ++i) olleh = reversed(running.server().read_request());
  EXPECT_FALSE(running.server().has_unread());
  for (int i = 4; i < 100; ++i) {
    // One answer makes room for exactly one request, while three are still due.
    running.server().respond(olleh);
    ASSERT_EQ(running.server().read_request().size(), 5U) << i;
    ASSERT_FALSE(running.server().has_unread()) << i;
  }
  for (int i = 0; i < 4; ++i) running.server().respond(olleh);
  EXPECT_EQ(running.fault(), "");
  EXPECT_EQ(running.finish().valid, 100U);
}

TEST(LoadConnection, AMismatchNamesThreadAndRequest) {
  const auto pool = random_pool(32, Service::reverse);
  RunningLoad running(plan_of(10, 2), pool);
  for (int i = 0; i < 3; ++i) running.server().respond(reversed(running.server().read_request()));
  auto wrong = reversed(running.server().read_request());
  wrong[30] ^= std::byte{1};
  running.server().respond(wrong);
  const auto& result = running.finish();
  EXPECT_EQ(
      running.fault().rfind("thread 7, request 3: the response differs at offset 30 of 32", 0), 0U)
      << running.fault();
  EXPECT_EQ(result.valid, 3U);
  EXPECT_EQ(result.answered, 4U);
}

// They are counted together up to the wrong one, and the rest of a frame is awaited.
TEST(LoadConnection, ResponsesThatComeTogetherAreCheckedOneByOne) {
  const auto pool = random_pool(32, Service::reverse);
  for (const std::size_t wrong : {0U, 5U, 7U, 8U}) {
    auto plan = plan_of(8, 8);
    plan.stop_on_error = false;
    RunningLoad running(plan, pool);
    Bytes all;
    for (std::size_t i = 0; i < 8; ++i) {
      auto response = reversed(running.server().read_request());
      if (i == wrong) response[31] ^= std::byte{1};
      const auto frame = protocol::make_frame(MessageId::client_response, response);
      all.insert(all.end(), frame.begin(), frame.end());
    }
    const std::span<const std::byte> bytes(all);
    ASSERT_TRUE(running.server().write(bytes.first(7 * 44 + 20)));
    ASSERT_TRUE(running.server().write(bytes.subspan(7 * 44 + 20)));
    const auto& result = running.finish();
    EXPECT_EQ(result.answered, 8U);
    EXPECT_EQ(result.valid, wrong < 8 ? 7U : 8U);
    EXPECT_EQ(result.service.count(), result.valid);
    EXPECT_EQ(result.errors.of(ErrorKind::mismatch), wrong < 8 ? 1U : 0U);
    if (wrong < 8) {
      EXPECT_EQ(running.fault().rfind(fmt::format("thread 7, request {}: ", wrong), 0), 0U);
    }
  }
}

TEST(LoadConnection, ResponsesThatComeTogetherHaveTheirOwnLatencies) {
  const auto pool = random_pool(32, Service::echo);
  RunningLoad running(plan_of(3, 2), pool);
  const auto first = running.server().read_request();
  const auto second = running.server().read_request();
  EXPECT_FALSE(running.server().read_more(30ms));
  running.server().respond(first);  // so the third is sent 30 ms after the second
  const auto third = running.server().read_request();
  auto both = protocol::make_frame(MessageId::client_response, second);
  const auto last = protocol::make_frame(MessageId::client_response, third);
  both.insert(both.end(), last.begin(), last.end());
  ASSERT_TRUE(running.server().write(both));
  const auto& result = running.finish();
  EXPECT_EQ(result.valid, 3U);
  EXPECT_GE(result.service.max() - result.service.min(), 29ms);
}

// Requests differ, so a response to a neighbouring one cannot pass.
TEST(LoadConnection, ResponsesOutOfOrderAreWrong) {
  const auto pool = random_pool(16, Service::echo);
  RunningLoad running(plan_of(2, 2), pool);
  const auto first = running.server().read_request();
  const auto second = running.server().read_request();
  running.server().respond(second);
  running.server().respond(first);
  EXPECT_EQ(running.fault().rfind("thread 7, request 0: the response differs", 0), 0U);
}

TEST(LoadConnection, ACloseCountsWhatIsUnanswered) {
  const auto pool = hello_pool();
  RunningLoad running(plan_of(10, 8), pool);
  running.server().respond(reversed(running.server().read_request()));
  for (int i = 0; i < 8; ++i) running.server().read_request();
  running.server().close();
  EXPECT_EQ(running.fault(),
            "thread 7, request 1: the server closed the connection; 8 requests unanswered");
}

// Whether the load thread notices first that it cannot send is chance, so several times.
TEST(LoadConnection, AnErrorFrameBeforeACloseIsReported) {
  const auto pool = random_pool(std::size_t{1} << 20, Service::echo);
  for (int i = 0; i < 10; ++i) {
    RunningLoad running(plan_of(100, 100), pool);
    // Closing with requests unread resets the connection while the load thread is still sending.
    ASSERT_TRUE(running.server().read_more(kBound));
    ASSERT_TRUE(running.server().write(
        protocol::make_error_frame(protocol::Refusal::frame_too_long, "1 MiB?")));
    running.server().close();
    ASSERT_EQ(running.fault(), "thread 7, request 0: the server reports error 2: 1 MiB?");
  }
}

TEST(LoadConnection, AnUnaskedResponseIsWrong) {
  const auto pool = hello_pool();
  RunningLoad running(plan_of(2, 1), pool);
  auto twice =
      protocol::make_frame(MessageId::client_response, reversed(running.server().read_request()));
  twice.insert(twice.end(), twice.begin(), twice.end());
  ASSERT_TRUE(running.server().write(twice));
  EXPECT_EQ(running.fault(), "thread 7, request 1: the server sent data without a request");
}

TEST(LoadConnection, SilenceIsAnError) {
  const auto pool = hello_pool();
  auto plan = plan_of(10, 4);
  plan.response_timeout = 50ms;
  RunningLoad running(plan, pool);
  running.server().respond(reversed(running.server().read_request()));
  EXPECT_EQ(running.fault().rfind("thread 7, request 1: no response for 0.", 0), 0U)
      << running.fault();
  EXPECT_NE(running.fault().find("4 requests unanswered"), std::string::npos) << running.fault();
}

/// Runs `requests` in the order of `pool`, and expects them so.
void expect_in_order(const RequestPool& pool, std::uint32_t requests) {
  LoadPlan plan = plan_of(requests, 3);
  plan.in_order = true;
  RunningLoad running(plan, pool);
  for (std::uint32_t i = 0; i < requests; ++i) {
    const auto frame = pool.frames(i % pool.size(), 1).subspan(protocol::kFrameHeaderSize);
    const Bytes request = running.server().read_request();
    ASSERT_EQ(request, Bytes(frame.begin(), frame.end())) << i;
    running.server().respond(reversed(request));
  }
  EXPECT_EQ(running.fault(), "");
  EXPECT_EQ(running.finish().valid, requests);
}

// After the last request of the pool comes the first, also within a window.
TEST(LoadConnection, RequestsInOrder) {
  expect_in_order(random_pool(20, Service::reverse), 600);
  const auto mixed = RequestPool::of_sizes({{16, 1}, {40, 1}}, {}, Service::reverse);
  expect_in_order(mixed, mixed.size() + 20);
}

TEST(LoadConnection, RequestsAreChosenAtRandom) {
  const auto pool = random_pool(40, Service::reverse);
  RunningLoad running(plan_of(100, 1), pool);
  std::set<Bytes> requests;
  for (int i = 0; i < 100; ++i) {
    const Bytes request = running.server().read_request();
    requests.insert(request);
    running.server().respond(reversed(request));
  }
  EXPECT_GT(requests.size(), 50U);
  EXPECT_EQ(running.finish().valid, 100U);
}

TEST(LoadConnection, SizesAreChosenByTheirWeights) {
  const auto pool = RequestPool::of_sizes({{3, 1}, {1000, 3}}, {}, Service::reverse);
  RunningLoad running(plan_of(400, 4), pool);
  const int short_ones = running.answer(400, 3);
  EXPECT_GT(short_ones, 60);
  EXPECT_LT(short_ones, 140);
  EXPECT_EQ(running.finish().valid, 400U);
}

TEST(LoadConnection, SlotsThatThinkAreNotInTheWindow) {
  const auto pool = hello_pool();
  LoadPlan plan = plan_of(8, 4);
  plan.think = 10 * kBound;
  RunningLoad running(plan, pool);
  Bytes olleh;
  for (int i = 0; i < 4; ++i) olleh = reversed(running.server().read_request());
  for (int i = 0; i < 4; ++i) {
    running.server().respond(olleh);
    EXPECT_FALSE(running.server().read_more(20ms));
  }
  running.control().stop();  // nothing is in flight: it ends at once
  EXPECT_EQ(running.finish().valid, 4U);
  EXPECT_EQ(running.finish().sent, 4U);
}

TEST(LoadConnection, EachSlotThinksThoughTheAnswersComeTogether) {
  const auto pool = hello_pool();
  LoadPlan plan = plan_of(8, 4);
  plan.think = 10 * kBound;
  DrivenConnection driven(plan, pool);
  driven.share.thinking.emplace(plan.think, plan.max_in_flight);
  driven.connection.start();
  driven.answer(4);
  driven.run_until([&] { return driven.interval->valid == 4; });
  EXPECT_EQ(driven.interval->sent, 4U);
}

TEST(LoadConnection, ItEndsByTimeWhileItThinks) {
  const auto pool = hello_pool();
  LoadPlan plan = plan_of(0, 1);
  plan.duration = 50ms;
  plan.think = 10 * kBound;
  RunningLoad running(plan, pool);
  running.server().respond(reversed(running.server().read_request()));
  EXPECT_EQ(running.finish().valid, 1U);
  EXPECT_EQ(running.fault(), "");
}

TEST(LoadConnection, ACloseWithoutAnyDataAsksForThePort) {
  const auto pool = hello_pool();
  RunningLoad running(plan_of(3, 1), pool);
  running.server().read_request();
  running.server().close();
  EXPECT_EQ(running.fault(),
            "thread 7, request 0: the server closed the connection; 1 requests unanswered, and it "
            "never sent anything: is this the port for clients?");
}

// The second response came with the first, and is not looked at.
TEST(LoadConnection, TheFirstLateResponseEndsIt) {
  const auto pool = random_pool(16, Service::echo);
  LoadPlan plan = plan_of(2, 2);
  plan.deadline = 1ms;
  RunningLoad running(plan, pool);
  auto both = protocol::make_frame(MessageId::client_response, running.server().read_request());
  const auto second =
      protocol::make_frame(MessageId::client_response, running.server().read_request());
  both.insert(both.end(), second.begin(), second.end());
  std::this_thread::sleep_for(10ms);
  ASSERT_TRUE(running.server().write(both));
  const auto& result = running.finish();
  EXPECT_EQ(running.fault(), "thread 7, request 0: the response came after --deadline");
  EXPECT_EQ(result.errors.of(ErrorKind::late), 1U);
  EXPECT_EQ(result.answered, 1U);
  EXPECT_EQ(result.valid, 0U);
}

TEST(LoadConnection, WhatIsInFlightAtTheEndIsLogged) {
  const auto pool = hello_pool();
  const Target nobody;
  RequestLog log;
  RunningLoad running(plan_of(10, 3), pool, nobody, &log);
  running.server().respond(reversed(running.server().read_request()));
  for (int i = 0; i < 3; ++i) running.server().read_request();
  running.control().stop();
  running.finish();
  const auto chunks = log.take();
  ASSERT_EQ(chunks.size(), 1U);
  ASSERT_EQ(chunks[0].size(), 4U);
  EXPECT_FALSE(chunks[0][0].error);
  for (std::size_t i = 1; i < 4; ++i) {
    EXPECT_EQ(chunks[0][i].error, ErrorKind::unanswered);
    EXPECT_EQ(chunks[0][i].connection, 7U);
    EXPECT_GE(chunks[0][i].done - chunks[0][i].sent, 1s);  // as long as it waits after a stop
  }
}

TEST(LoadConnection, WhatComesAfterTheEndDoesNotWakeTheThread) {
  const auto pool = hello_pool();
  DrivenConnection driven(plan_of(1, 1), pool);
  driven.connection.start();
  driven.answer(1);
  driven.run_until([&] { return driven.connection.over(); });
  EXPECT_EQ(driven.share.with_room_count, 0U);
  driven.server.close();
  EXPECT_TRUE(driven.is_quiet());
}

/// Reads what has come to a socket as soon as its event flag is raised.
struct Thief final : progress::EventHandler {
  void on_events(std::uint32_t) override {
    std::byte room[64];
    stolen = ::recv(socket, room, sizeof room, 0);
  }

  int socket = -1;
  ssize_t stolen = 0;
};

TEST(LoadConnection, AnEventWithoutDataIsIgnored) {
  const auto pool = hello_pool();
  DrivenConnection driven(plan_of(1, 1), pool);
  Thief thief;
  thief.socket = driven.fd;
  const core::Fd event(::eventfd(0, EFD_CLOEXEC));
  driven.share.engine.watch(event.get(), EPOLLIN, thief);
  driven.connection.start();
  const Bytes olleh = reversed(driven.server.read_request());
  ::eventfd_write(event.get(), 1);  // the thief's event is the first one
  driven.server.respond(olleh);
  ::alarm(30);  // ends the program instead of waiting for ever
  driven.run_until([&] { return thief.stolen != 0; });
  EXPECT_EQ(thief.stolen, 17);
  driven.share.engine.unwatch(event.get(), thief);
  driven.server.respond(olleh);
  driven.run_until([&] { return driven.connection.over(); });
  ::alarm(0);
  EXPECT_EQ(driven.share.fault, "");
  EXPECT_EQ(driven.interval->valid, 1U);
  EXPECT_EQ(driven.interval->rx_bytes, 17U);
}

// The socket has room again when all is sent, and that is no news any more.
TEST(LoadConnection, RoomIsAwaitedOnlyWhileBytesAreUnsent) {
  const auto pool = random_pool(std::size_t{3} << 20, Service::echo);
  DrivenConnection driven(plan_of(1, 1), pool);
  driven.connection.start();
  const std::size_t all = (std::size_t{3} << 20) + protocol::kFrameHeaderSize;
  ASSERT_LT(driven.interval->tx_bytes, all);
  driven.run_until([&] {
    driven.server.read_more(1ms);
    return driven.interval->tx_bytes == all;
  });
  EXPECT_TRUE(driven.is_quiet());
}

TEST(LoadConnection, ABatchOfSeveralSizesHasItsLimitInBytes) {
  const auto pool = RequestPool::of_sizes({{1, 1}, {50'000, 1}}, {}, Service::reverse);
  DrivenConnection driven(plan_of(256, 256), pool);
  const int room = 1;  // the least that there is: less than a batch
  ASSERT_EQ(::setsockopt(driven.fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof room), 0);
  driven.connection.start();
  EXPECT_GE(driven.interval->sent, kBatchBytes / 50'012);
  EXPECT_LT(driven.interval->sent, 40U);
}

TEST(LoadConnection, AfterAnErrorOfSendingThereIsNoRoom) {
  const auto pool = hello_pool();
  DrivenConnection driven(open_plan(1000, 0, 4), pool);
  driven.open();
  driven.connection.start();
  ASSERT_EQ(driven.share.with_room_count, 1U);
  driven.server.close();
  driven.connection.send_due(1);
  EXPECT_EQ(driven.share.with_room_count, 0U);
  driven.run_until([&] { return driven.connection.over(); });
  EXPECT_EQ(driven.share.fault,
            "connection, request 0: the server closed the connection, sending failed (Broken "
            "pipe); 1 requests unanswered, and it never sent anything: is this the port for "
            "clients?");
  EXPECT_EQ(driven.interval->errors.total(), 1U);
}

TEST(LoadConnection, AfterTheEndOfSendingThereIsNoRoom) {
  const auto pool = hello_pool();
  DrivenConnection driven(open_plan(1000, 0, 4), pool);
  driven.open();
  driven.connection.start();
  driven.connection.send_due(3);
  EXPECT_EQ(driven.share.with_room_count, 1U);
  EXPECT_EQ(driven.share.in_flight, 3U);
  driven.connection.stop_sending();
  EXPECT_EQ(driven.share.with_room_count, 0U);
  EXPECT_FALSE(driven.connection.over());
  driven.answer(3);
  driven.run_until([&] { return driven.connection.over(); });
  EXPECT_EQ(driven.interval->valid, 3U);
}

TEST(LoadConnection, AnOpenLoopsWindowIsRoomForAsManyAsWereAnswered) {
  const auto pool = hello_pool();
  DrivenConnection driven(open_plan(1000, 0, 2), pool);
  driven.open();
  driven.connection.start();
  driven.connection.send_due(5);
  EXPECT_EQ(driven.interval->sent, 2U);
  EXPECT_EQ(driven.share.with_room_count, 0U);
  driven.answer(1);
  driven.run_until([&] { return driven.share.with_room_count == 1; });
  driven.connection.send_due(5);
  EXPECT_EQ(driven.interval->sent, 3U);
  EXPECT_EQ(driven.share.with_room_count, 0U);
}

// The other faults are described by the first one alone.
TEST(LoadConnection, TheFirstWrongAnswerIsKeptBesideAnotherFault) {
  const auto pool = random_pool(32, Service::reverse);
  LoadPlan plan = plan_of(100, 1);
  plan.stop_on_error = false;
  DrivenConnection driven(plan, pool);
  driven.connection.start();
  const auto refuse = [&] {
    driven.server.read_request();
    ASSERT_TRUE(
        driven.server.write(protocol::make_error_frame(protocol::Refusal::worker_unavailable, "")));
    const auto errors = driven.interval->errors.total() + 1;
    driven.run_until([&] { return driven.interval->errors.total() == errors; });
  };
  refuse();
  EXPECT_TRUE(driven.share.fault.starts_with("connection, request 0: the server reports"))
      << driven.share.fault;
  refuse();
  EXPECT_EQ(driven.share.wrong_answer, "");
  for (std::uint64_t i = 1; i <= 2; ++i) {
    driven.server.respond(Bytes(32, std::byte{7}));
    driven.server.read_request();
    driven.run_until([&] { return driven.interval->errors.of(ErrorKind::mismatch) == i; });
    EXPECT_TRUE(driven.share.wrong_answer.starts_with("connection, request 2: the response"))
        << driven.share.wrong_answer;
  }
}

}  // namespace
}  // namespace offload::client
