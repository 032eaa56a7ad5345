#include "comch/transport/transport.hpp"
#include "tests/comch/conformance/suite.hpp"
#include "tests/support/thrown.hpp"

namespace offload::comch::conformance {

using protocol::MessageId;
using protocol::Refusal;
using support::Bytes;
using support::random_bytes;
using support::reversed;
using Until = WorkerSide::Until;

void Sessions::expect_served(std::size_t messages_of_a_channel, std::size_t length,
                             std::uint32_t seed) {
  for (std::uint32_t channel = 0; channel < kChannels; ++channel) {
    std::vector<Bytes> requests;
    std::vector<Bytes> expected;
    for (std::size_t i = 0; i < messages_of_a_channel; ++i) {
      requests.push_back(random_bytes(length, seed++));
      expected.push_back(reversed(requests.back()));
    }
    ASSERT_EQ(post(channel, requests), requests.size());
    EXPECT_EQ(responses(channel, expected.size()), expected) << "channel " << channel;
  }
}

TEST_P(Sessions, EverySizeInOrder) {
  const WorkerSide worker(server_->address());
  std::vector<std::size_t> sizes;
  for (std::size_t size = 0; size < 400; size += 13) sizes.push_back(size);
  for (const std::size_t size : {371UL, 372UL, 373UL, 4096UL, 16'384UL, std::size_t{kLongest}}) {
    sizes.push_back(size);
  }
  std::uint32_t seed = 0;
  for (const std::size_t size : sizes) expect_served(3, size, seed += 10);
}

TEST_P(Sessions, WhatIsAskedWithoutAWorkerWaitsForOne) {
  std::vector<Bytes> requests;
  for (std::uint32_t i = 0; i < kDepth + 1; ++i) requests.push_back(random_bytes(kAlone + i, i));
  for (std::uint32_t channel = 0; channel < kChannels; ++channel) {
    EXPECT_EQ(post(channel, requests), kDepth) << "a full channel takes no more";
  }
  const WorkerSide worker(server_->address());
  for (std::uint32_t channel = 0; channel < kChannels; ++channel) {
    const auto got = responses(channel, kDepth);
    ASSERT_EQ(got.size(), kDepth);
    for (std::uint32_t i = 0; i < kDepth; ++i) EXPECT_EQ(got[i], reversed(requests[i]));
    EXPECT_EQ(post(channel, requests), kDepth) << "its slots are free again";
    responses(channel, kDepth);
  }
}

void Sessions::expect_all_served(const std::vector<Bytes>& requests) {
  std::array<std::size_t, kChannels> posted{};
  std::array<std::vector<Bytes>, kChannels> got;
  EXPECT_TRUE(support::eventually([&] {
    bool all = true;
    for (std::uint32_t channel = 0; channel < kChannels; ++channel) {
      posted[channel] += post(channel, std::span(requests).subspan(posted[channel]));
      if (got[channel].size() == requests.size()) continue;
      auto some = responses(channel, 1);
      std::move(some.begin(), some.end(), std::back_inserter(got[channel]));
      all = false;
    }
    return all;
  }));
  for (const auto& responses : got) {
    ASSERT_EQ(responses.size(), requests.size());
    for (std::size_t i = 0; i < requests.size(); ++i) {
      EXPECT_EQ(responses[i], reversed(requests[i]));
    }
  }
}

// All slots have the longest messages, so that requests and responses fill both ways at once.
TEST_P(Sessions, BothDirectionsFull) {
  const WorkerSide worker(server_->address());
  std::vector<Bytes> requests;
  for (std::uint32_t i = 0; i < 5 * kDepth; ++i) requests.push_back(random_bytes(kLongest - i, i));
  expect_all_served(requests);
}

/// Returns short messages, then a long one, and so on, which take `slots` slots.
std::vector<Bytes> mixed(std::uint32_t slots, std::uint32_t seed) {
  std::vector<Bytes> messages;
  for (std::uint32_t i = 0; i < slots / 2; ++i) {
    for (std::uint32_t j = 0; j < 7; ++j) messages.push_back(random_bytes(20 * i + j, ++seed));
    messages.push_back(random_bytes(kAlone * (i % 4 + 1), ++seed));
  }
  return messages;
}

// There are more messages than slots, in one content of the longest kind and of each form.
TEST_P(Sessions, ShortMessagesShareSlots) {
  const WorkerSide worker(server_->address());
  std::uint32_t seed = 0;
  for (const std::size_t length : {0UL, 1UL, 4UL, 46UL, 64UL, 68UL, 200UL, 1000UL}) {
    SCOPED_TRACE(length);
    expect_served(length > 100 ? kDepth : kernels::kMaxBatchCount, length, seed += 100);
  }
}

TEST_P(Sessions, BatchesAmongLongMessages) {
  const WorkerSide worker(server_->address());
  expect_all_served(mixed(10 * kDepth, 1));
}

// At whichever step a worker dies, the next one serves, also the requests that came in between.
TEST_P(Sessions, AWorkerDiesAtEachStep) {
  std::uint32_t seed = 0;
  for (const Until until : {Until::greeted, Until::offered, Until::attached}) {
    SCOPED_TRACE(static_cast<int>(until));
    { const WorkerSide dies(server_->address(), until); }
    const auto request = random_bytes(1000, ++seed);
    ASSERT_EQ(post(0, {&request, 1}), 1U);
    ASSERT_TRUE(server_->eventually([](ServerSide& side) { return side.attached == side.lost; }));
    const WorkerSide next(server_->address());
    EXPECT_EQ(responses(0, 1), std::vector<Bytes>{reversed(request)});
    expect_served(kDepth, 500, seed += 100);
  }
}

TEST_P(Sessions, AWorkerDiesWhileItServes) {
  for (std::uint32_t round = 0; round < 5; ++round) {
    const std::vector<Bytes> requests = mixed(kDepth, 100 * round);
    {
      const WorkerSide dies(server_->address());
      ASSERT_EQ(post(1, requests), requests.size());
    }
    ASSERT_TRUE(server_->eventually([](ServerSide& side) { return side.attached == side.lost; }));
    const WorkerSide next(server_->address());
    const auto got = responses(1, requests.size());
    ASSERT_EQ(got.size(), requests.size()) << "once each";
    for (std::size_t i = 0; i < requests.size(); ++i) EXPECT_EQ(got[i], reversed(requests[i]));
  }
}

TEST_P(Sessions, AServerDies) {
  WorkerSide worker(server_->address());
  const Address address = server_->address();
  server_.reset();
  EXPECT_TRUE(worker.run_until([&] { return worker.lost.has_value(); }));
  EXPECT_FALSE(worker.refused);
  server_.emplace(address);
  const WorkerSide again(server_->address());
  expect_served(2, 100, 1);
}

TEST_P(Sessions, TheServerShutsDown) {
  WorkerSide worker(server_->address());
  expect_served(kDepth, 600, 1);
  server_->with([](ServerSide& side) {
    side.session->start_shutdown(protocol::ShutdownReason::server_leaves);
    return 0;
  });
  ASSERT_TRUE(worker.run_until([&] { return worker.start_shutdowns == 1; }));
  EXPECT_FALSE(server_->with([](ServerSide& side) { return side.session->done(); }));
  worker.session().complete();
  EXPECT_TRUE(server_->eventually([](ServerSide& side) { return side.session->done(); }));
}

TEST_P(Sessions, TheWorkerAsksForTheShutdown) {
  WorkerSide worker(server_->address());
  worker.session().request_shutdown();
  EXPECT_TRUE(server_->eventually([](ServerSide& side) { return side.shutdown_requests == 1; }));
  EXPECT_EQ(server_->with([](ServerSide& side) { return side.lost; }), 0);
}

TEST_P(Sessions, NobodyAttachesDuringAShutdown) {
  server_->with([](ServerSide& side) {
    side.session->start_shutdown(protocol::ShutdownReason::server_leaves);
    return 0;
  });
  const WorkerSide worker(server_->address());
  EXPECT_EQ(worker.refused, Refusal::shutting_down);
}

TEST_P(Sessions, ChannelsGoToASecondWorkerWhileTheFirstStays) {
  WorkerSide first(server_->address());
  expect_served(kDepth, 600, 1);
  ASSERT_TRUE(first.run_until([&] { return first.assignments.size() == 1; }));
  {
    WorkerSide second(server_->address());
    ASSERT_TRUE(second.run_until([&] { return second.assignments.size() == 1; }));
    expect_served(kDepth, 600, 100);
    ASSERT_TRUE(first.run_until([&] { return first.assignments.size() == 2; }));
    EXPECT_EQ(first.assignments, (std::vector<std::uint32_t>{kChannels, 0}));
    EXPECT_EQ(second.assignments, (std::vector<std::uint32_t>{kChannels}));
    const WorkerSide third(server_->address());
    EXPECT_EQ(third.refused, Refusal::busy);
  }
  EXPECT_TRUE(server_->eventually([](ServerSide& side) { return side.lost == 1; }));
  EXPECT_FALSE(first.lost);
}

TEST_P(Sessions, AWorkerAsksToBeLetGo) {
  WorkerSide worker(server_->address());
  worker.session().request_detach();
  ASSERT_TRUE(worker.run_until([&] { return worker.start_shutdowns == 1; }));
  worker.session().complete();
  EXPECT_TRUE(server_->eventually([](ServerSide& side) { return side.lost == 1; }));
  const WorkerSide next(server_->address());
  expect_served(kDepth, 100, 1);
}

/// Returns whether `send` sends: false while the peer has too many messages to take.
template <class Send>
bool takes(Send send) {
  try {
    return send(), true;
  } catch (const core::Error& error) {
    EXPECT_EQ(error.code(), core::ErrorCode::full) << error.what();
    return error.code() != core::ErrorCode::full;
  }
}

// The largest allowed number is in flight, again and again, while the channels serve.
TEST_P(Sessions, UserMessagesGoBothWays) {
  WorkerSide worker(server_->address());
  std::vector<Bytes> sent;
  for (std::uint32_t round = 0; round < 5; ++round) {
    for (std::uint32_t i = 0; i < UserMessages::kMostUntaken; ++i) {
      sent.push_back(random_bytes(i % 2 == 0 ? protocol::kMaxUserMessage : i, 10 * round + i));
      ASSERT_TRUE(worker.run_until(
          [&] { return takes([&] { worker.session().send_user_message(sent.back()); }); }));
      ASSERT_TRUE(server_->eventually(
          [&](ServerSide& side) { return takes([&] { side.send(sent.back()); }); }));
    }
    ASSERT_TRUE(worker.run_until([&] { return worker.user_messages.size() == sent.size(); }));
    ASSERT_TRUE(server_->eventually(
        [&](ServerSide& side) { return side.user_messages.size() == sent.size(); }));
    expect_served(2, 100, 100 * round);
  }
  EXPECT_EQ(worker.user_messages, sent);
  EXPECT_TRUE(server_->with([&](ServerSide& side) { return side.user_messages == sent; }));
  EXPECT_FALSE(worker.lost);
}

TEST_P(Sessions, UserMessagesThatThePeerDoesNotTakeAreRefusedHere) {
  WorkerSide worker(server_->address());
  const Bytes message = random_bytes(protocol::kMaxUserMessage, 1);
  // The worker does not run meanwhile.
  const auto refused = server_->with([&](ServerSide& side) {
    for (std::uint32_t i = 0; i < UserMessages::kMostUntaken; ++i) side.send(message);
    return support::thrown_by([&] { side.send(message); }).code();
  });
  EXPECT_EQ(refused, core::ErrorCode::full);
  expect_served(kDepth, 600, 1);
  ASSERT_TRUE(
      worker.run_until([&] { return worker.user_messages.size() == UserMessages::kMostUntaken; }));
  EXPECT_TRUE(
      server_->eventually([&](ServerSide& side) { return takes([&] { side.send(message); }); }));
  EXPECT_EQ(server_->with([](ServerSide& side) { return side.lost; }), 0);
}

TEST_P(Sessions, AWorkerOfAnotherVersion) {
  auto other = hello();
  other.version = 7;
  const WorkerSide worker(server_->address(), Until::attached, other);
  EXPECT_EQ(worker.refused, Refusal::bad_version);
  const WorkerSide right(server_->address());
  expect_served(1, 10, 1);
}

TEST_P(Sessions, AServerOfAnotherVersion) {
  server_.reset();
  const Address address = GetParam().address(folder_.path());
  const auto listener = transport_of(address.scheme).listen(address);
  std::thread server([&] {
    std::unique_ptr<ControlConnection> connection;
    EXPECT_TRUE(support::eventually([&] { return (connection = listener->accept()) != nullptr; }));
    if (!connection) return;
    EXPECT_EQ(connection->await().id, MessageId::hello);
    protocol::Welcome welcome;
    welcome.version = 7;
    welcome.channel_count = 1;
    welcome.keep_alive_ms = 1000;
    connection->send(MessageId::welcome, welcome.encode());
    EXPECT_EQ(connection->await().id, MessageId::error);
  });
  const WorkerSide worker(listener->address());
  server.join();
  EXPECT_EQ(worker.refused, Refusal::bad_version);
}

// The sessions choose by the kind of connection, so the table must give the right one.
TEST_P(Sessions, ConnectionsAreOfTheKindThatTheTableSays) {
  const Address address = server_->address();
  const auto connection = transport_of(address.scheme).connect(address);
  EXPECT_EQ(dynamic_cast<LocalControlConnection*>(connection.get()) != nullptr, address.local());
  EXPECT_EQ(dynamic_cast<NetworkControlConnection*>(connection.get()) != nullptr, !address.local());
}

TEST_P(Sessions, WhoHasAnotherKeyIsNotLetIn) {
  if (!has_keys()) GTEST_SKIP() << "the kernel says who the peer is: there are no keys";
  for (const auto& keys : {test::keyring_of(8), test::keyring_of(8, 7)}) {
    const auto error = support::thrown_by([&] { WorkerSide(address_with(keys)); });
    EXPECT_EQ(error.code(), core::ErrorCode::connection_aborted);
  }
  const WorkerSide right(address_with(test::keyring_of(7, 8)));
  expect_served(1, 10, 1);
}

TEST_P(Sessions, WhoProvesNothingIsNotLetIn) {
  if (!has_keys()) GTEST_SKIP() << "the kernel says who the peer is: there are no keys";
  Address address = server_->address();
  address.insecure = true;
  const auto stranger = connect_to(address);
  stranger->send(MessageId::hello, hello().encode());
  EXPECT_EQ(support::thrown_by([&] { stranger->await(); }).code(),
            core::ErrorCode::connection_reset);
  const WorkerSide right(server_->address());
  expect_served(1, 10, 1);
}

// A peer without the key may not: a worker of many channels connects once for each.
TEST_P(Sessions, WhoProvesTheKeyMayConnectAsOftenAsItLikes) {
  if (!has_keys()) GTEST_SKIP() << "the kernel says who the peer is: there are no keys";
  for (int i = 0; i < 3 * static_cast<int>(net::SourceLimits::kBurst); ++i) {
    const auto worker = connect_to(server_->address());
    worker->send(MessageId::keep_alive, protocol::KeepAlive{1}.encode());
    ASSERT_EQ(worker->await().id, MessageId::error) << i << ": expected a greeting first";
  }
}

}  // namespace offload::comch::conformance
