#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "channel/channel_memory.hpp"
#include "channel/packets.hpp"
#include "tests/channel/channel_fixture.hpp"
#include "tests/support/readable.hpp"

namespace offload::channel {
namespace {

using kernels::Outcome;
using kernels::ResponseStatus;
using support::Bytes;
using support::is_readable;
using support::random_bytes;
using support::reversed;
using test::Ends;

TEST(Requester, ARequestGoesOutAndItsResponseComesBack) {
  Ends ends(4, 1000);
  std::uint64_t sequence = 0;
  for (const std::size_t length : {0U, 1U, 12U, 13U, 255U, 371U, 372U, 373U, 999U, 1000U}) {
    const auto message = random_bytes(length, static_cast<std::uint32_t>(length));
    ASSERT_TRUE(ends.server.post(message));
    EXPECT_EQ(ends.server.receive(), nullptr);
    ASSERT_EQ(ends.serve(sequence++), Outcome::answered);
    EXPECT_EQ(ends.server.take(), reversed(message)) << length;
    EXPECT_EQ(ends.server.receive(), nullptr);
  }
}

TEST(Requester, TheLongestMessageThereCanBe) {
  Ends ends(1, kernels::kMaxMessageLength);
  const auto message = random_bytes(kernels::kMaxMessageLength, 1);
  ASSERT_TRUE(ends.server.post(message));
  ASSERT_EQ(ends.serve(0), Outcome::answered);
  EXPECT_EQ(ends.server.take(), reversed(message));
}

TEST(Requester, WhenAllTasksAreInFlightThereIsNone) {
  Ends ends(4, 64);
  for (std::uint32_t i = 0; i < 4; ++i) ASSERT_TRUE(ends.server.post(random_bytes(i, i)));
  EXPECT_TRUE(ends.server.requester.full());
  EXPECT_EQ(ends.server.requester.awaited(), 4U);
  ASSERT_EQ(ends.serve(0), Outcome::answered);
  // Received is not enough: its payload may still be read out of the slot.
  PostRecvTask* const task = ends.server.receive();
  ASSERT_NE(task, nullptr);
  EXPECT_TRUE(ends.server.requester.full());
  EXPECT_EQ(ends.server.requester.awaited(), 3U);
  ASSERT_TRUE(ends.server.requester.release(*task).ok());
  EXPECT_TRUE(ends.server.requester.full());
  ends.server.requester.flush();
  EXPECT_FALSE(ends.server.requester.full());
}

TEST(Requester, AFullChannelTakesNoMessage) {
  Ends ends(2, 64);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(ends.server.post({}));
  EXPECT_EQ(ends.server.requester.post({}, nullptr), core::Status(core::ErrorCode::again));
  EXPECT_EQ(ends.server.requester.awaited(), 2U);
  ASSERT_EQ(ends.serve(0), Outcome::answered);
  ASSERT_TRUE(ends.server.take().has_value());
  EXPECT_TRUE(ends.server.requester.post({}, nullptr).ok());
}

TEST(Requester, AMessageOverTheLimitIsNotTaken) {
  Ends ends(2, 64);
  const auto message = random_bytes(65, 1);
  EXPECT_EQ(ends.server.requester.post(message, nullptr),
            core::Status(core::ErrorCode::invalid_value));
  EXPECT_EQ(ends.server.requester.awaited(), 0U);
  EXPECT_TRUE(ends.server.requester.post(std::span(message).first(64), nullptr).ok());
}

TEST(Requester, TakesNothingUnlessItIsOpen) {
  ChannelMemory memory(0, 2, 64, -1);
  struct Ignore {
    void on_response(PostRecvTask&) {}
  } ignore;
  progress::Engine engine;
  Requester requester(memory.endpoint(), ignore);
  EXPECT_EQ(requester.post({}, nullptr), core::Status(core::ErrorCode::bad_state));
  requester.open(engine);
  EXPECT_TRUE(requester.post({}, nullptr).ok());
  requester.close();
  EXPECT_EQ(requester.post({}, nullptr), core::Status(core::ErrorCode::bad_state));
}

TEST(Requester, AReceiveIsPostedAgainOnce) {
  Ends ends(4, 64);
  ASSERT_TRUE(ends.server.post({}));
  ASSERT_EQ(ends.serve(0), Outcome::answered);
  PostRecvTask* const task = ends.server.receive();
  ASSERT_NE(task, nullptr);
  EXPECT_TRUE(ends.server.requester.release(*task).ok());
  EXPECT_EQ(ends.server.requester.release(*task), core::Status(core::ErrorCode::bad_state));
}

TEST(Requester, ARequestThatIsGivenUpIsAnsweredToNobody) {
  Ends ends(4, 64);
  int users[3] = {};
  for (int& user : users) ASSERT_TRUE(ends.server.post({}, &user));
  ASSERT_EQ(ends.serve(0), Outcome::answered);
  PostRecvTask* const first = ends.server.receive();
  ASSERT_NE(first, nullptr);
  std::vector<void*> pending;
  ends.server.requester.for_each_pending(
      [&](RequestTask& request) { pending.push_back(std::exchange(request.user_data, nullptr)); });
  EXPECT_EQ(pending, (std::vector<void*>{users + 1, users + 2}));
  EXPECT_EQ(first->user_data, users);
  ASSERT_EQ(ends.serve(1), Outcome::answered);
  PostRecvTask* const second = ends.server.receive();
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(second->user_data, nullptr);
  EXPECT_EQ(ends.server.requester.awaited(), 1U);
}

TEST(Requester, ResponsesComeInTheOrderOfTheirRequests) {
  Ends ends(4, 64);
  for (std::uint32_t i = 0; i < 4; ++i) ASSERT_TRUE(ends.server.post(random_bytes(20, i)));
  for (const std::uint64_t sequence : {3U, 1U, 2U}) {
    ASSERT_EQ(ends.serve(sequence), Outcome::answered);
    EXPECT_EQ(ends.server.receive(), nullptr);
  }
  ASSERT_EQ(ends.serve(0), Outcome::answered);
  for (std::uint32_t i = 0; i < 4; ++i)
    EXPECT_EQ(ends.server.take(), reversed(random_bytes(20, i)));
}

TEST(Requester, AResponseKnowsItsRequest) {
  Ends ends(4, 64);
  int users[6] = {};
  for (std::uint64_t i = 0; i < 6; ++i) {
    ASSERT_TRUE(ends.server.post({}, users + i));
    ASSERT_EQ(ends.serve(i), Outcome::answered);
    PostRecvTask* const task = ends.server.receive();
    ASSERT_NE(task, nullptr);
    EXPECT_EQ(task->user_data, users + i);
    EXPECT_EQ(task->sequence(), i);
    EXPECT_EQ(task->response_status(), ResponseStatus::ok);
    ASSERT_TRUE(ends.server.requester.release(*task).ok());
    ends.server.requester.flush();
  }
}

TEST(Requester, ManyLapsOfAllSizes) {
  for (const std::uint32_t depth : {1U, 2U, 8U}) {
    Ends ends(depth, 600);
    for (std::uint64_t i = 0; i < 5000; ++i) {
      const auto number = static_cast<std::uint32_t>(i);
      const auto message = random_bytes(number * 37 % 601, number);
      ASSERT_TRUE(ends.server.post(message));
      ASSERT_EQ(ends.serve(i), Outcome::answered);
      ASSERT_EQ(ends.server.take(), reversed(message)) << i;
    }
  }
}

TEST(Requester, PayloadsOfAllKindsInFlightAtOnce) {
  Ends ends(8, 5000);
  std::vector<Bytes> messages;
  for (std::uint32_t i = 0; i < 8; ++i) {
    messages.push_back(random_bytes(i % 2 == 0 ? 5000 - i : 30 * i, i));
    ASSERT_TRUE(ends.server.post(messages.back()));
  }
  for (std::uint64_t i = 0; i < 8; ++i) ASSERT_EQ(ends.serve(i), Outcome::answered);
  for (const Bytes& message : messages) EXPECT_EQ(ends.server.take(), reversed(message));
}

TEST(Requester, AResponseThatIsNotWholeIsNotReceived) {
  Ends ends(4, 1000);
  const auto message = random_bytes(100, 1);
  ASSERT_TRUE(ends.server.post(message));
  ASSERT_EQ(ends.serve(0), Outcome::answered);
  kernels::Packet* const packets = ends.worker.view().response(0).packets;
  for (std::uint32_t v = 0; v < kernels::packets_for(100); ++v) {
    --packets[v].flag;
    EXPECT_EQ(ends.server.receive(), nullptr) << v;
    ++packets[v].flag;
  }
  EXPECT_EQ(ends.server.take(), reversed(message));
}

constexpr std::uint64_t kFlagPeriod = std::uint64_t{1} << 31;  ///< laps

/// Sends one message from `sequence` on, as a requester that has come so far.
void exchange_at(Ends& ends, std::uint64_t sequence, const Bytes& message) {
  ChannelEndpoint endpoint = ends.memory.endpoint();
  endpoint.first = sequence;
  test::Server server(endpoint);
  ASSERT_TRUE(server.post(message));
  ASSERT_EQ(ends.serve(sequence), Outcome::answered);
  EXPECT_EQ(server.take(), reversed(message));
}

TEST(Requester, FreshMemoryIsNoResponseInAnyLap) {
  for (const std::uint64_t wrap : {kFlagPeriod, 2 * kFlagPeriod}) {
    for (std::uint64_t lap = wrap - 3; lap != wrap + 3; ++lap) {
      Ends ends(1, 1000);
      const auto message = random_bytes(lap % 2 == 0 ? 1000 : 30, 1);
      ChannelEndpoint endpoint = ends.memory.endpoint();
      endpoint.first = lap;
      test::Server server(endpoint);
      EXPECT_EQ(ends.serve(lap), Outcome::nothing) << lap;
      ASSERT_TRUE(server.post(message));
      EXPECT_EQ(server.receive(), nullptr) << lap;
      ASSERT_EQ(ends.serve(lap), Outcome::answered);
      EXPECT_EQ(server.take(), reversed(message));
    }
  }
}

// A long message, then a flag's whole period of others that do not reach its last packets: what it
// left there is not taken for a part of the message that has the same flag again.
TEST(Requester, NoPacketIsFreshAgainAPeriodLater) {
  for (const std::size_t other : {0U, 5U, 100U, 1000U}) {
    Ends ends(4, 1000);
    const std::uint64_t first = 77 * 4 + 2;
    exchange_at(ends, first, random_bytes(372, 1));
    // Laps that do not rewrite the slot leave those packets as they are.
    for (std::uint64_t lap = kernels::kRewriteLaps - 1; lap < 77 + kFlagPeriod;
         lap += kernels::kRewriteLaps) {
      exchange_at(ends, lap * 4 + 2, random_bytes(other, 3));
    }
    const std::uint64_t last = first + kFlagPeriod * 4;
    const auto& layout = ends.worker.view().layout;
    kernels::store_packet(ends.memory.endpoint().view.request(last).packets,
                          {{372, 0, 0}, layout.flag_of(last)});
    EXPECT_EQ(ends.serve(last), Outcome::nothing) << "after messages of " << other << " bytes";
    exchange_at(ends, last, random_bytes(372, 2));
  }
}

TEST(Requester, AnEmptyRequestThatComesFirstMayHaveALongResponse) {
  Ends ends(4, 1000);
  ASSERT_TRUE(ends.server.post({}));
  kernels::store_packet(ends.worker.view().response(0).packets, {{1000, 0, 0}, 1});
  PostRecvTask* const task = ends.server.receive();
  ASSERT_NE(task, nullptr);
  EXPECT_EQ(task->response_status(), ResponseStatus::ok);
  EXPECT_EQ(task->payload().size(), 1000U);
}

// The worker is a stranger too.
TEST(Requester, AResponseOverTheLimitHasNoPayload) {
  for (const std::uint32_t max_length : {48U, 300U, 1000U}) {
    for (const std::uint32_t length : {max_length + 1, 0x8000'0000U, 0xffff'ffffU}) {
      Ends ends(4, max_length);
      ASSERT_TRUE(ends.server.post({}));
      kernels::store_packet(ends.worker.view().response(0).packets, {{length, 0, 0}, 1});
      PostRecvTask* const task = ends.server.receive();
      ASSERT_NE(task, nullptr);
      EXPECT_EQ(task->response_status(), ResponseStatus::bad_length);
      EXPECT_TRUE(task->payload().empty());
    }
  }
}

TEST(Requester, ARefusalIsPassedOn) {
  Ends ends(4, 1000);
  ASSERT_TRUE(ends.server.post(random_bytes(20, 1)));
  kernels::store_packet(ends.memory.endpoint().view.request(0).packets, {{1001, 0, 0}, 1});
  ASSERT_EQ(ends.serve(0), Outcome::refused);
  PostRecvTask* const task = ends.server.receive();
  ASSERT_NE(task, nullptr);
  EXPECT_EQ(task->response_status(), ResponseStatus::bad_length);
  EXPECT_TRUE(task->payload().empty());
}

TEST(Requester, HeaderSaysHowFarItGot) {
  Ends ends(4, 64);
  const kernels::RequestHeader& header = ends.worker.view().request_header();
  ASSERT_TRUE(ends.server.post({}));
  ASSERT_EQ(ends.serve(0), Outcome::answered);
  PostRecvTask* const task = ends.server.receive();
  ASSERT_NE(task, nullptr);
  ends.server.requester.flush();
  EXPECT_EQ(header.consumed, 0U);  // a worker that comes now may not reuse what is being read
  ASSERT_TRUE(ends.server.requester.release(*task).ok());
  EXPECT_EQ(header.consumed, 0U);
  ends.server.requester.flush();
  EXPECT_EQ(header.consumed, 1U);
}

TEST(Requester, FlushRingsAWorkerThatSleeps) {
  Ends ends(4, 64);
  Waiter waiter = ends.worker.waiter();
  ASSERT_TRUE(ends.server.post({}));
  EXPECT_FALSE(is_readable(waiter.fd(), 0));
  waiter.arm();
  ASSERT_TRUE(ends.server.requester.post({}, nullptr).ok());
  EXPECT_FALSE(is_readable(waiter.fd(), 0));
  ends.server.requester.flush();
  EXPECT_TRUE(is_readable(waiter.fd(), 0));
}

TEST(Requester, AWorkerThatRingsWakesAServerThatArmed) {
  Ends ends(4, 64);
  SlotQueue& requester = ends.server.requester.slots();
  requester.set_wakeup(Wakeup::doorbell);
  ASSERT_TRUE(ends.server.post({}));
  ends.worker.ringer().ring();
  EXPECT_FALSE(is_readable(ends.memory.endpoint().waiter.fd(), 0));
  EXPECT_EQ(requester.arm(), core::Duration::max());
  ends.worker.ringer().ring();
  EXPECT_TRUE(is_readable(ends.memory.endpoint().waiter.fd(), 0));
  requester.disarm();
  EXPECT_EQ(ends.worker.view().response_header().responses.armed, 0U);
}

TEST(Requester, ASilentWorkerIsLookedForSoon) {
  Ends ends(4, 64);
  SlotQueue& requester = ends.server.requester.slots();
  requester.set_wakeup(Wakeup::polling);
  EXPECT_EQ(requester.arm(), core::Duration::max());  // nothing is due
  ASSERT_TRUE(ends.server.post({}));
  EXPECT_GT(requester.arm(), core::Duration{});
  EXPECT_LE(requester.arm(), std::chrono::milliseconds(1));
  EXPECT_EQ(ends.worker.view().response_header().responses.armed, 0U);
}

TEST(Requester, WithoutAWorkerOrARequestThereIsNothingToWaitFor) {
  Ends ends(4, 64);
  SlotQueue& requester = ends.server.requester.slots();
  requester.set_wakeup(Wakeup::none);
  ASSERT_TRUE(ends.server.post({}));
  EXPECT_EQ(requester.arm(), core::Duration::max());
  EXPECT_EQ(ends.worker.view().response_header().responses.armed, 0U);
  ASSERT_EQ(ends.serve(0), Outcome::answered);
  EXPECT_FALSE(ends.server.take().has_value()) << "whose answer would it be";
  requester.set_wakeup(Wakeup::doorbell);
  ASSERT_TRUE(ends.server.take().has_value());
  EXPECT_EQ(requester.arm(), core::Duration::max());
  EXPECT_EQ(ends.worker.view().response_header().responses.armed, 0U);
}

/// A channel that has run for very long: no test would live to see it otherwise.
TEST(Requester, FlagsWrapAroundAfterFourBillionLaps) {
  const std::uint32_t depth = 2;
  const auto layout = kernels::make_layout(depth, 600);
  std::vector<kernels::Packet> memory(layout.bytes() / sizeof(kernels::Packet),
                                      kernels::Packet{{}, 0xffff'fffd});
  auto* const base = reinterpret_cast<std::uint8_t*>(memory.data());
  const kernels::ChannelView channel{base, base + layout.request_bytes, layout};
  channel.request_header() = {};
  channel.response_header() = {};
  const DoorbellPipe bell = DoorbellPipe::make();
  const std::uint64_t start = std::uint64_t{0xffff'fffd} * depth;
  test::Server server({0,
                       channel,
                       {channel.response_header().requests, bell.ringing.get()},
                       {channel.response_header().responses, bell.waiting.get()},
                       start});
  kernels::Staging staging{};
  for (std::uint64_t sequence = start; sequence < start + 6 * depth; ++sequence) {
    const auto message =
        random_bytes(sequence % 3 == 0 ? 600 : 60, static_cast<std::uint32_t>(sequence));
    ASSERT_TRUE(server.post(message));
    ASSERT_FALSE(server.take().has_value());
    ASSERT_EQ(kernels::serve(kernels::SingleLane{}, channel, sequence, kernels::Reverse{}, staging),
              Outcome::answered);
    EXPECT_EQ(server.take(), reversed(message));
  }
}

}  // namespace
}  // namespace offload::channel
