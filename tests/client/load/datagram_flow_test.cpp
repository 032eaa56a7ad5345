#include "apps/client/load/datagram_flow.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>

#include <array>
#include <climits>
#include <map>
#include <type_traits>

#include "core/error.hpp"
#include "net/socket.hpp"
#include "tests/client/load/datagram_fixture.hpp"
#include "tests/support/thrown.hpp"

/// A load thread with a UDP socket.
namespace offload::client {
namespace {

/// Runs a plan against a worker whose behaviour is `serve`.
template <class Serve>
std::unique_ptr<Seen> run_datagrams(LoadPlan plan, const RequestPool& pool, const Serve& serve,
                                    RequestLog* log = nullptr) {
  plan.udp = true;
  FakeDatagramWorker worker;
  const Target target{{worker.address()}, {}};
  RunControl control;
  std::vector<net::Stream> sockets;
  sockets.emplace_back(
      open_datagram_socket(worker.address(), pool.longest_frame(), plan.max_in_flight));
  LoadThread load(0, 0, std::move(sockets), plan,
                  {.pool = pool, .target = target, .control = control, .log = log});
  std::jthread thread([&] { load.run(core::Clock::now()); });
  if constexpr (std::is_invocable_v<Serve, FakeDatagramWorker&, RunControl&>) {
    serve(worker, control);
  } else {
    serve(worker);
  }
  thread.join();
  return seen_by(load);
}

TEST(DatagramFlow, AnswersInAnyOrder) {
  const auto pool = random_pool(40, Service::reverse);
  const auto seen = run_datagrams(plan_of(400, 5), pool, [](FakeDatagramWorker& worker) {
    for (int i = 0; i < 80; ++i) {
      std::vector<Asked> asked;
      for (int k = 0; k < 5; ++k) asked.push_back(worker.read());
      for (const int k : {3, 0, 4, 1, 2}) worker.answer(asked[static_cast<std::size_t>(k)]);
    }
  });
  EXPECT_EQ(seen->fault, "");
  EXPECT_EQ(seen->total.valid, 400U);
  EXPECT_EQ(seen->total.lost + seen->total.duplicates + seen->total.late_answers, 0U);
  EXPECT_EQ(seen->total.tx_bytes, 400U * 60);
  expect_in_flight_as_served(seen->total);
  EXPECT_EQ(seen->total.rx_bytes, 400U * 60);
}

TEST(DatagramFlow, SequencesAreNeverUsedTwice) {
  const auto pool = hello_pool();
  std::map<std::uint64_t, int> seen_sequences;
  run_datagrams(plan_of(300, 3), pool, [&](FakeDatagramWorker& worker) {
    for (int i = 0; i < 300; ++i) {
      const Asked asked = worker.read();
      EXPECT_EQ(++seen_sequences[asked.sequence], 1);
      worker.answer(asked);
    }
  });
}

TEST(DatagramFlow, DuplicatesAreCountedAndNoErrors) {
  const auto pool = hello_pool();
  const auto seen = run_datagrams(plan_of(50, 1), pool, [](FakeDatagramWorker& worker) {
    for (int i = 0; i < 50; ++i) {
      const Asked asked = worker.read();
      if (i != 49) worker.answer(asked);  // before the next request's answer: it is seen
      worker.answer(asked);
    }
  });
  EXPECT_EQ(seen->fault, "");
  EXPECT_EQ(seen->total.valid, 50U);
  EXPECT_EQ(seen->total.duplicates, 49U);
}

TEST(DatagramFlow, WhatIsLostMayComeLateOnce) {
  const auto pool = hello_pool();
  const auto seen = run_datagrams(counting_plan(3, 1, 50ms), pool, [](FakeDatagramWorker& worker) {
    const Asked lost = worker.read();
    const Asked next = worker.read();  // 50 ms later
    worker.answer(lost);
    worker.answer(lost);
    worker.answer(next);
    worker.answer(worker.read());
  });
  EXPECT_EQ(seen->total.sent, 3U);
  EXPECT_EQ(seen->total.valid, 2U);
  EXPECT_EQ(seen->total.lost, 1U);
  EXPECT_EQ(seen->total.late_answers, 1U);
  EXPECT_EQ(seen->total.duplicates, 1U);
  EXPECT_EQ(seen->total.errors.of(ErrorKind::time_out), 1U);
  EXPECT_EQ(seen->total.errors.total(), 1U);
}

TEST(DatagramFlow, IsSentAgainWithTheSameSequence) {
  const auto pool = hello_pool();
  LoadPlan plan = counting_plan(2, 1, 50ms);
  plan.retries = 2;
  const auto seen = run_datagrams(plan, pool, [](FakeDatagramWorker& worker) {
    const Asked asked = worker.read();
    EXPECT_EQ(worker.read().sequence, asked.sequence);
    EXPECT_EQ(worker.read().sequence, asked.sequence);
    worker.answer(asked);
    worker.answer(worker.read());
  });
  EXPECT_EQ(seen->fault, "");
  EXPECT_EQ(seen->total.valid, 2U);
  EXPECT_EQ(seen->total.sent, 2U);
  EXPECT_EQ(seen->total.sent_again, 2U);
  EXPECT_GE(seen->total.service.max(), 100ms);  // from the first sending
}

TEST(DatagramFlow, WhatIsWrongIsCountedByKind) {
  const auto pool = hello_pool();
  const auto seen =
      run_datagrams(counting_plan(5, 1, kBound), pool, [](FakeDatagramWorker& worker) {
        const Bytes hello = worker.read().payload;
        // None of these is of a request: too short, one of the future, one of no slot.
        worker.send(0, {});
        worker.send(1000, protocol::make_frame(MessageId::client_response, hello));
        worker.send(UINT64_MAX, protocol::make_frame(MessageId::client_response, hello));
        worker.send(0, protocol::make_frame(MessageId::client_response, hello));  // other bytes
        auto longer = protocol::make_frame(MessageId::client_response, reversed(hello));
        longer.push_back({});
        worker.send(worker.read().sequence, longer);
        worker.send(worker.read().sequence, protocol::make_frame(MessageId::client_response, {}));
        worker.send(worker.read().sequence,
                    protocol::make_error_frame(protocol::Refusal::worker_failed, ""));
        worker.answer(worker.read());
      });
  EXPECT_EQ(seen->total.answered, 5U);
  EXPECT_EQ(seen->total.valid, 1U);
  EXPECT_EQ(seen->total.errors.of(ErrorKind::mismatch), 2U);
  EXPECT_EQ(seen->total.errors.of(ErrorKind::bad_frame), 4U);
  EXPECT_EQ(seen->total.errors.of(kind_of(protocol::Refusal::worker_failed)), 1U);
  EXPECT_EQ(seen->total.errors.total(), 7U);
  EXPECT_EQ(seen->total.rx_error_bytes, 4U);  // a refusal without text is its code
}

TEST(DatagramFlow, TheFirstErrorStopsIfErrorsAreNotCounted) {
  const auto pool = hello_pool();
  LoadPlan plan = plan_of(5, 1);
  plan.response_timeout = 50ms;
  const auto seen = run_datagrams(plan, pool, [](FakeDatagramWorker& worker) { worker.read(); });
  EXPECT_NE(seen->fault.find("no answer for 0."), std::string::npos) << seen->fault;
  EXPECT_EQ(seen->total.sent, 1U);
}

// A socket without room keeps a part of a batch; requests become due before it has room again.
TEST(DatagramFlow, WhatBecomesDueBesideAnUnsentBatchIsSentInItsTurn) {
  constexpr std::uint32_t kFirst = 4;
  constexpr std::uint32_t kRequests = 44;
  NarrowSockets ends;
  const auto pool = hello_pool();
  std::vector<ScheduledRequest> schedule(kRequests, {70ms, 0});
  std::fill_n(schedule.begin(), kFirst, ScheduledRequest{0ms, 0});
  LoadPlan plan = counting_plan(kRequests, 64, 40ms);
  plan.udp = true;
  plan.retries = 1000;
  plan.arrivals = Arrivals::replay(schedule, 0, 1);
  const Target target{};
  RunControl control;
  std::vector<net::Stream> sockets;
  sockets.emplace_back(std::move(ends.flow));
  LoadThread load(0, 0, std::move(sockets), plan,
                  {.pool = pool, .target = target, .control = control});
  std::jthread thread([&] { load.run(core::Clock::now()); });
  std::this_thread::sleep_for(120ms);  // the worker does not read: not all repeats have room
  std::map<std::uint64_t, int> seen_sequences;
  while (seen_sequences.size() < kRequests) {
    pollfd watched{ends.worker.get(), POLLIN, 0};
    ASSERT_EQ(::poll(&watched, 1, std::chrono::milliseconds(support::kBound).count()), 1);
    std::array<std::byte, 64> datagram;
    const ssize_t size = ::recv(ends.worker.get(), datagram.data(), datagram.size(), 0);
    ASSERT_GT(size, 0);
    if (++seen_sequences[protocol::load_big_endian<std::uint64_t>(datagram.data())] != 1) continue;
    std::vector<std::byte> answer(datagram.begin(), datagram.begin() + protocol::kSequenceSize);
    const auto frame =
        protocol::make_frame(MessageId::client_response, reversed(support::bytes_of("hello")));
    answer.insert(answer.end(), frame.begin(), frame.end());
    ASSERT_EQ(::send(ends.worker.get(), answer.data(), answer.size(), 0),
              static_cast<ssize_t>(answer.size()));
  }
  thread.join();
  const auto seen = seen_by(load);
  EXPECT_EQ(seen->fault, "");
  EXPECT_EQ(seen->total.valid, kRequests);
  EXPECT_EQ(seen_sequences.size(), kRequests);
}

TEST(DatagramFlow, ARequestThatDoesNotFitIsRefusedAtOnce) {
  const FakeDatagramWorker worker;  // loopback has an MTU of 65,536, of which IP allows 65,535
  constexpr std::size_t kMost = 65'535 - 28 - protocol::kSequenceSize;  // frame's header included
  const core::Fd socket = open_datagram_socket(worker.address(), kMost, 1);
  int discovery = -1;
  socklen_t size = sizeof discovery;
  ASSERT_EQ(::getsockopt(socket.get(), IPPROTO_IP, IP_MTU_DISCOVER, &discovery, &size), 0);
  EXPECT_EQ(discovery, IP_PMTUDISC_DO);  // it sends no fragments
  const auto error =
      support::thrown_by([&] { (void)open_datagram_socket(worker.address(), kMost + 1, 1); });
  EXPECT_EQ(error.code(), core::ErrorCode::invalid_value);
  EXPECT_EQ(error.what(), "a request of 65488 bytes does not fit in a datagram to " +
                              worker.address().to_string() +
                              ": at most 65487 are allowed with the MTU of 65535");
}

TEST(DatagramFlow, IPv6HasLongerHeaders) {
  const net::SocketAddress address = net::resolve("::1", 9).front();
  try {
    (void)net::bind_tcp(net::resolve("::1", 0).front());
  } catch (const core::Error& error) {
    GTEST_SKIP() << "no IPv6 here: " << error.what();
  }
  constexpr std::size_t kMost = 65'536 - 48 - protocol::kSequenceSize;  // frame's header included
  EXPECT_TRUE(open_datagram_socket(address, kMost, 1).valid());
  EXPECT_THROW((void)open_datagram_socket(address, kMost + 1, 1), core::Error);
}

TEST(DatagramFlow, MoreAnswersHaveNoLessRoom) {
  const FakeDatagramWorker worker;
  const auto room_for = [&](std::uint32_t in_flight) {
    const core::Fd socket = open_datagram_socket(worker.address(), 100, in_flight);
    int room = 0;
    socklen_t size = sizeof room;
    EXPECT_EQ(::getsockopt(socket.get(), SOL_SOCKET, SO_RCVBUF, &room, &size), 0);
    return room;
  };
  EXPECT_GE(room_for(1U << 20), room_for(1000));  // 4 GiB are more than an int
  EXPECT_EQ(room_for(16), 2 * 16 * 4096);         // the kernel doubles it
  // As much as this user may have.
  const core::Fd plain(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const int most = INT_MAX / 2;
  int room = 0;
  socklen_t size = sizeof room;
  for (const int option : {SO_RCVBUF, SO_RCVBUFFORCE}) {
    (void)::setsockopt(plain.get(), SOL_SOCKET, option, &most, sizeof most);
  }
  ASSERT_EQ(::getsockopt(plain.get(), SOL_SOCKET, SO_RCVBUF, &room, &size), 0);
  EXPECT_EQ(room_for(1U << 20), room);
}

TEST(DatagramFlow, ThereIsRoomForOneByteMoreOfEachDatagram) {
  EXPECT_EQ(DatagramFlow::receive_room(1000), 32U * (20 + 1000 + 1));
  EXPECT_EQ(DatagramFlow::receive_room(0), 32U * (20 + protocol::kErrorFrameRoom + 1));
}

TEST(DatagramFlow, TheLastRepeatIsFollowedByTheLoss) {
  const auto pool = hello_pool();
  LoadPlan plan = counting_plan(2, 1, 100ms);
  plan.retries = 2;
  RequestLog log;
  const auto seen = run_datagrams(
      plan, pool,
      [](FakeDatagramWorker& worker) {
        const Asked lost = worker.read();
        for (int i = 0; i < 2; ++i) EXPECT_EQ(worker.read().sequence, lost.sequence);
        const Asked next = worker.read();
        EXPECT_NE(next.sequence, lost.sequence);
        worker.answer(next);
      },
      &log);
  EXPECT_EQ(seen->total.lost, 1U);
  EXPECT_EQ(seen->total.valid, 1U);
  EXPECT_EQ(seen->total.sent_again, 2U);
  EXPECT_EQ(seen->fault.rfind("thread 0, request 0: no answer for 0.", 0), 0U) << seen->fault;
  EXPECT_GE(seen->total.in_flight_ns, 300e6);
  const auto chunks = log.take();
  ASSERT_EQ(chunks.size(), 1U);
  ASSERT_EQ(chunks[0].size(), 2U);
  EXPECT_EQ(chunks[0][0].error, ErrorKind::time_out);
  EXPECT_GE(chunks[0][0].done - chunks[0][0].sent, 300ms);
  EXPECT_FALSE(chunks[0][1].error);
}

// Each of the last 64 requests of a slot is known to be lost or not.
TEST(DatagramFlow, EachLostRequestMayComeLate) {
  const auto pool = hello_pool();
  const auto seen = run_datagrams(counting_plan(4, 1, 100ms), pool, [](FakeDatagramWorker& worker) {
    const Asked first = worker.read();
    const Asked second = worker.read();
    const Asked third = worker.read();
    worker.answer(third);
    const Asked last = worker.read();
    worker.answer(first);
    worker.answer(second);
    worker.answer(first);
    worker.answer(third);
    worker.answer(last);
  });
  EXPECT_EQ(seen->total.lost, 2U);
  EXPECT_EQ(seen->total.late_answers, 2U);
  EXPECT_EQ(seen->total.duplicates, 2U);
  EXPECT_EQ(seen->total.valid, 2U);
}

TEST(DatagramFlow, APortThatNobodyHasIsAnError) {
  const auto pool = hello_pool();
  LoadPlan plan = plan_of(5, 1);
  plan.response_timeout = 30ms;
  plan.retries = 1000;
  const auto close = [](FakeDatagramWorker& worker) { worker.close(); };
  const auto seen = run_datagrams(plan, pool, close);
  EXPECT_EQ(seen->fault, "thread 0, request 1: sending failed: Connection refused");
  EXPECT_EQ(seen->total.errors.of(ErrorKind::refused), 1U);
  EXPECT_EQ(seen->total.errors.total(), 1U);

  plan = counting_plan(3, 1, 30ms);
  plan.retries = 1;
  const auto counted = run_datagrams(plan, pool, close);
  EXPECT_EQ(counted->total.lost, 3U);
  EXPECT_EQ(counted->total.errors.of(ErrorKind::time_out), 3U);
  EXPECT_EQ(counted->total.errors.total(), 3U);
  EXPECT_NE(counted->fault.find(", sending failed (Connection refused)"), std::string::npos)
      << counted->fault;
}

TEST(DatagramFlow, AfterAStopWhatIsInFlightIsAwaitedAndLogged) {
  const auto pool = hello_pool();
  RequestLog log;
  const auto seen = run_datagrams(
      plan_of(1000, 3), pool,
      [](FakeDatagramWorker& worker, RunControl& control) {
        const Asked first = worker.read();
        worker.read();
        worker.read();
        control.stop();
        worker.answer(first);
      },
      &log);
  EXPECT_EQ(seen->fault, "");
  EXPECT_EQ(seen->total.valid, 1U);
  EXPECT_EQ(seen->total.sent - seen->total.answered, log.take().at(0).size() - 1);
}

TEST(DatagramFlow, ADurationEndsTheSending) {
  const auto pool = hello_pool();
  LoadPlan plan = plan_of(0, 2);
  plan.duration = 20ms;
  const auto seen = run_datagrams(plan, pool, [](FakeDatagramWorker& worker) {
    const Asked first = worker.read();
    const Asked second = worker.read();
    std::this_thread::sleep_for(100ms);
    worker.answer(first);
    worker.answer(second);
  });
  EXPECT_EQ(seen->total.valid, 2U);
  EXPECT_EQ(seen->total.sent, 2U);
  EXPECT_EQ(seen->total.valid_after_end, 2U);
  EXPECT_EQ(seen->total.rx_bytes_after_end, 50U);
  expect_in_flight_as_served(seen->total);
}

TEST(DatagramFlow, SlotsThatThinkAreNotInTheWindow) {
  const auto pool = hello_pool();
  LoadPlan plan = plan_of(4, 2);
  plan.think = 30ms;
  const auto seen = run_datagrams(plan, pool, [](FakeDatagramWorker& worker) {
    for (int i = 0; i < 4; ++i) worker.answer(worker.read());
  });
  EXPECT_EQ(seen->fault, "");
  EXPECT_EQ(seen->total.valid, 4U);
  EXPECT_GE(seen->total.end - seen->total.begin, 30ms);
}

}  // namespace
}  // namespace offload::client
