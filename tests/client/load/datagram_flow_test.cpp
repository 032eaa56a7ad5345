#include "apps/client/load/datagram_flow.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>

#include <array>
#include <map>
#include <optional>
#include <type_traits>

#include "core/error.hpp"
#include "tests/client/load/load_fixture.hpp"
#include "tests/support/thrown.hpp"

/// A load thread with a UDP socket; the test acts as the worker.
namespace offload::client {
namespace {

struct Asked {
  std::uint64_t sequence = 0;
  Bytes payload;
};

class FakeDatagramWorker {
 public:
  FakeDatagramWorker()
      : socket_(core::check_errno(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), "socket")) {
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    core::check_errno(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any),
                      "bind");
  }

  void close() { socket_.reset(); }
  /// Only takes datagrams of itself from now on: for others no program has the port.
  void refuse_others() {
    const net::SocketAddress own = address();
    core::check_errno(::connect(socket_.get(), own.get(), own.size), "connect");
  }
  [[nodiscard]] net::SocketAddress address() const { return net::local_address(socket_.get()); }

  /// Returns the next request; none within a second is a failure.
  Asked read() {
    pollfd watched{socket_.get(), POLLIN, 0};
    std::byte room[2048];
    peer_size_ = sizeof peer_;
    if (::poll(&watched, 1, 10'000) != 1) {
      ADD_FAILURE() << "no request came";
      return {};
    }
    const ssize_t count = ::recvfrom(socket_.get(), room, sizeof room, 0,
                                     reinterpret_cast<sockaddr*>(&peer_), &peer_size_);
    const auto frame = protocol::parse_frame(
        std::span(room).subspan(protocol::kSequenceSize,
                                static_cast<std::size_t>(count) - protocol::kSequenceSize),
        2048);
    EXPECT_EQ(frame.state, protocol::FrameView::State::complete);
    EXPECT_EQ(frame.id, MessageId::client_request);
    return {protocol::load_big_endian<std::uint64_t>(room),
            {frame.payload.begin(), frame.payload.end()}};
  }

  void send(std::uint64_t sequence, const std::vector<std::byte>& frame) {
    std::vector<std::byte> datagram(protocol::kSequenceSize);
    protocol::store_big_endian(datagram.data(), sequence);
    datagram.insert(datagram.end(), frame.begin(), frame.end());
    EXPECT_EQ(::sendto(socket_.get(), datagram.data(), datagram.size(), 0,
                       reinterpret_cast<const sockaddr*>(&peer_), peer_size_),
              static_cast<ssize_t>(datagram.size()));
  }
  void answer(const Asked& asked) {
    send(asked.sequence, protocol::make_frame(MessageId::client_response, reversed(asked.payload)));
  }

 private:
  core::Fd socket_;
  sockaddr_storage peer_{};
  socklen_t peer_size_ = 0;
};

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

LoadPlan counting_plan(std::uint64_t requests, std::uint32_t in_flight, core::Duration time_out) {
  LoadPlan plan = plan_of(requests, in_flight);
  plan.response_timeout = time_out;
  plan.stop_on_error = false;
  return plan;
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
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
  const core::Fd worker(ends[1]);
  const int room = 1;  // the least that there is: some datagrams
  ASSERT_EQ(::setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof room), 0);
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
  sockets.emplace_back(core::Fd(ends[0]));
  LoadThread load(0, 0, std::move(sockets), plan,
                  {.pool = pool, .target = target, .control = control});
  std::jthread thread([&] { load.run(core::Clock::now()); });
  std::this_thread::sleep_for(120ms);  // the worker does not read: not all repeats have room
  std::map<std::uint64_t, int> seen_sequences;
  while (seen_sequences.size() < kRequests) {
    pollfd watched{worker.get(), POLLIN, 0};
    ASSERT_EQ(::poll(&watched, 1, std::chrono::milliseconds(support::kBound).count()), 1);
    std::array<std::byte, 64> datagram;
    const ssize_t size = ::recv(worker.get(), datagram.data(), datagram.size(), 0);
    ASSERT_GT(size, 0);
    if (++seen_sequences[protocol::load_big_endian<std::uint64_t>(datagram.data())] != 1) continue;
    std::vector<std::byte> answer(datagram.begin(), datagram.begin() + protocol::kSequenceSize);
    const auto frame =
        protocol::make_frame(MessageId::client_response, reversed(support::bytes_of("hello")));
    answer.insert(answer.end(), frame.begin(), frame.end());
    ASSERT_EQ(::send(worker.get(), answer.data(), answer.size(), 0),
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
}

/// One request in flight, which is sent again once; errors are counted.
LoadPlan plan_with_a_retry(std::uint64_t count) {
  LoadPlan plan = counting_plan(count, 1, kBound);
  plan.retries = 1;
  return plan;
}

/// A flow without a load thread, with one request in flight. It sends to `worker`.
struct DrivenDatagrams : DrivenLoad {
  DrivenDatagrams(const LoadPlan& plan, const RequestPool& pool, const FakeDatagramWorker& worker)
      : DrivenLoad(plan, pool) {
    share.datagrams.resize(DatagramFlow::receive_room(65'535));
    core::Fd socket = open_datagram_socket(worker.address(), 100, 1);
    fd = socket.get();
    flow.emplace("flow", 0, std::move(socket), share);
  }
  /// Returns whether the socket has one of `events` in time.
  [[nodiscard]] bool has(short events) const {
    return support::eventually([&] {
      pollfd watched{fd, POLLIN, 0};
      return ::poll(&watched, 1, 1) == 1 && (watched.revents & events) != 0;
    });
  }

  int fd = -1;
  std::optional<DatagramFlow> flow;
};

TEST(DatagramFlow, EachRequestOfASlotHasAllRetries) {
  const auto pool = hello_pool();
  FakeDatagramWorker worker;
  DrivenDatagrams driven(plan_with_a_retry(3), pool, worker);
  driven.flow->start();
  for (std::uint64_t i = 1; i <= 3; ++i) {
    const Asked asked = worker.read();
    driven.flow->on_deadline(driven.flow->deadline());
    ASSERT_EQ(driven.interval->sent_again, i);
    EXPECT_EQ(worker.read().sequence, asked.sequence);
    worker.answer(asked);
    driven.run_until([&] { return driven.interval->valid == i; });
  }
  EXPECT_EQ(driven.interval->lost, 0U);
  EXPECT_TRUE(driven.flow->over());
}

TEST(DatagramFlow, ARequestThatCannotBeSentIsAnError) {
  const auto pool = random_pool(66'000, Service::reverse);  // longer than a datagram
  const FakeDatagramWorker worker;
  DrivenDatagrams stopped(plan_of(1, 1), pool, worker);
  stopped.flow->start();
  EXPECT_TRUE(stopped.flow->over());
  EXPECT_EQ(stopped.share.fault, "flow, request 1: sending failed: Message too long");

  DrivenDatagrams counting(counting_plan(1, 1, kBound), pool, worker);
  counting.flow->start();
  EXPECT_FALSE(counting.flow->over());
  counting.flow->on_deadline(counting.flow->deadline());
  EXPECT_TRUE(counting.flow->over());
  EXPECT_EQ(counting.interval->lost, 1U);
  EXPECT_TRUE(counting.share.fault.ends_with(", sending failed (Message too long)"))
      << counting.share.fault;
}

// Otherwise a request could be lost although its answer is there.
TEST(DatagramFlow, AnErrorHidesNoAnswerBehindIt) {
  const auto pool = hello_pool();
  FakeDatagramWorker worker;
  DrivenDatagrams driven(plan_with_a_retry(1), pool, worker);
  driven.flow->start();
  const Asked asked = worker.read();
  worker.refuse_others();
  driven.flow->on_deadline(driven.flow->deadline());
  ASSERT_TRUE(driven.has(POLLERR));
  worker.answer(asked);
  ASSERT_TRUE(driven.has(POLLIN));
  EXPECT_TRUE(driven.share.engine.run_once(core::Clock::now() + kBound));
  EXPECT_EQ(driven.interval->valid, 1U);
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

}  // namespace
}  // namespace offload::client
