#include "comch/transport/rdma/slots.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "channel/channel_memory.hpp"
#include "comch/proxy/worker_proxy.hpp"
#include "kernels/serve.hpp"
#include "kernels/services/reverse.hpp"
#include "tests/channel/channel_fixture.hpp"
#include "tests/rdma/fake_fabric.hpp"
#include "tests/rdma/fake_fixture.hpp"
#include "tests/support/bytes.hpp"
#include "tests/support/log_capture.hpp"
#include "tests/support/thrown.hpp"

/// Slots that are written into a peer's, on a fake device. The test is the peer, and carries out
/// what the device would.
namespace offload::comch {
namespace {

using rdma::test::fake;
using support::Bytes;
using support::random_bytes;

constexpr std::uint32_t kSlotDepth = 4;
constexpr std::uint32_t kSlotLongest = 2000;
constexpr std::uint32_t kPeerKey = 0x7001;

/// The peer's channel, whose memory is this test's.
class PeerSlots {
 public:
  PeerSlots() : memory_(0, kSlotDepth, kSlotLongest, -1), view_(memory_.endpoint().view) {}

  [[nodiscard]] const kernels::ChannelView& view() const { return view_; }
  /// As it describes the region at `memory` to who has described itself as `other`.
  [[nodiscard]] static Bytes describe(std::span<const std::byte> other, const std::uint8_t* memory,
                                      std::uint64_t length) {
    SlotEnd end = SlotEnd::decode(other);
    end.region = {reinterpret_cast<std::uint64_t>(memory), kPeerKey};
    end.length = length;
    return end.encode();
  }

 private:
  channel::ChannelMemory memory_;
  kernels::ChannelView view_;
};

class RdmaSlotsTest : public rdma::FakeDeviceTest {
 protected:
  static rdma::test::FakeQueuePair& queue() { return *fake().queue_pairs.back(); }
  /// What the device does with the oldest work request: it copies or swaps, and says so.
  void carry_out() {
    const rdma::test::Posted& work = queue().sends.front();
    if (work.send.opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
      ASSERT_EQ(work.send.wr.atomic.rkey, kPeerKey);
      auto* const word = std::bit_cast<std::uint64_t*>(work.send.wr.atomic.remote_addr);
      ASSERT_EQ(*word, work.send.wr.atomic.compare_add);
      *word = work.send.wr.atomic.swap;
    } else {
      ASSERT_EQ(work.send.wr.rdma.rkey, kPeerKey);
      auto* to = std::bit_cast<std::byte*>(work.send.wr.rdma.remote_addr);
      for (const ibv_sge& piece : work.pieces) {
        std::memcpy(to, std::bit_cast<const void*>(piece.addr), piece.length);
        to += piece.length;
      }
    }
    if (work.send.opcode == IBV_WR_RDMA_WRITE_WITH_IMM) arrived_.push_back(work.send.imm_data);
    fake().finish_send(queue());
  }
  void carry_out_all() {
    while (!queue().sends.empty()) carry_out();
  }

  support::LogCapture log_;
  PeerSlots peer_;
  std::vector<std::uint32_t> arrived_;  ///< immediates at the peer
};

// ---- The server's end

class RdmaSlotRequestsTest : public RdmaSlotsTest {
 protected:
  ~RdmaSlotRequestsTest() override { proxy_.reset(); }

  void start() {
    auto endpoint = std::make_unique<RdmaSlotEndpoint>(
        std::make_shared<Adapter>("fake0"), rdma::PathOptions{}, memory_.endpoint().view);
    endpoint->connect(PeerSlots::describe(endpoint->describe(), peer_.view().requests,
                                          peer_.view().layout.request_bytes));
    proxy_.emplace(server_.requester, memory_.endpoint(), std::move(endpoint));
    server_.requester.set_wakeup(channel::Wakeup::engine);
  }
  void post(const Bytes& request) {
    ASSERT_TRUE(server_.requester.post(request, channel::test::Server::somebody()).ok());
    server_.requester.flush();
    server_.engine.progress();
  }
  /// The worker takes request `sequence` out of its slot, and its response is written.
  void answer(std::uint64_t sequence) {
    kernels::ChannelView view = peer_.view();
    view.responses = memory_.endpoint().view.responses;
    kernels::Staging staging{};
    ASSERT_EQ(kernels::serve(kernels::SingleLane{}, view, sequence, kernels::Reverse{}, staging),
              kernels::Outcome::answered);
    kernels::rdma::set_flag(view.response(sequence), 0);  // the server sets it
    say_it_came(static_cast<std::uint32_t>(sequence % kSlotDepth));
  }
  /// The immediate of a response, as the device tells it.
  static void say_it_came(std::uint32_t slot) {
    ibv_wc told{};
    told.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
    told.imm_data = htonl(slot);
    fake().finish_receive(queue(), told);
  }

  channel::ChannelMemory memory_{0, kSlotDepth, kSlotLongest, -1};
  channel::test::Server server_{memory_.endpoint()};
  std::optional<WorkerProxy> proxy_;
};

TEST_F(RdmaSlotRequestsTest, EachIsWrittenAndItsResponseTaken) {
  start();
  std::uint64_t sequence = 0;
  for (const std::uint32_t length : {0U, 1U, 12U, 13U, 372U, 373U, kSlotLongest, 5U, 1000U}) {
    const Bytes request = random_bytes(length, length);
    post(request);
    ASSERT_LE(queue().sends.size(), kMostRequestWrites);
    EXPECT_EQ(queue().sends.back().send.send_flags, unsigned{IBV_SEND_SIGNALED});
    carry_out_all();
    answer(sequence++);
    server_.engine.progress();
    const auto response = server_.take();
    ASSERT_TRUE(response.has_value()) << length;
    EXPECT_EQ(*response, Bytes(request.rbegin(), request.rend()));
    EXPECT_EQ(queue().receives.size(), kSlotDepth);
  }
}

TEST_F(RdmaSlotRequestsTest, AnAnswerToNothingEndsTheConnection) {
  for (const std::uint32_t slot : {0U, 1U, kSlotDepth, 0xffff'ffffU}) {
    start();
    if (slot != 0) post(random_bytes(100, 1));  // in slot 0
    say_it_came(slot);
    server_.engine.progress();
    ASSERT_NE(proxy_->failure(), nullptr) << slot;
    EXPECT_EQ(*proxy_->failure(), "the worker answered what it was not asked");
    proxy_.reset();
  }
}

TEST_F(RdmaSlotRequestsTest, AReceiveThatIsNotTakenEndsTheConnection) {
  start();
  post(random_bytes(100, 1));
  carry_out_all();
  answer(0);
  fake().fail_call = "post_recv";
  server_.engine.progress();
  ASSERT_NE(proxy_->failure(), nullptr);
  EXPECT_NE(proxy_->failure()->find("no receive can be posted"), std::string::npos);
}

TEST_F(RdmaSlotRequestsTest, ADeviceWithoutAtomicsIsRefused) {
  fake().device.atomic_cap = IBV_ATOMIC_NONE;
  const auto error = support::thrown_by([&] { start(); });
  EXPECT_EQ(error.code(), core::ErrorCode::not_supported);
  EXPECT_NE(std::string(error.what()).find("--data-path cpu"), std::string::npos);
}

TEST_F(RdmaSlotRequestsTest, TheWorkerSeesNoneBeforeTheAtomic) {
  start();
  post(random_bytes(100, 1));
  ASSERT_EQ(queue().sends.size(), 3U);
  const auto complete = [&] {
    return kernels::is_complete(peer_.view().request(0), peer_.view().layout.flag_of(0));
  };
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(complete());
    carry_out();
  }
  EXPECT_TRUE(complete());
}

TEST_F(RdmaSlotRequestsTest, AFailedWriteEndsTheConnection) {
  start();
  post(random_bytes(100, 1));
  fake().finish_send(queue(), IBV_WC_RETRY_EXC_ERR);
  server_.engine.progress();
  ASSERT_NE(proxy_->failure(), nullptr);
  EXPECT_NE(proxy_->failure()->find("the connection broke"), std::string::npos);
}

TEST_F(RdmaSlotRequestsTest, AWriteThatIsNotTakenEndsTheConnection) {
  start();
  fake().fail_call = "post_send";
  post(random_bytes(100, 1));
  ASSERT_NE(proxy_->failure(), nullptr);
  EXPECT_NE(proxy_->failure()->find("cannot be written"), std::string::npos);
}

TEST_F(RdmaSlotRequestsTest, AnyCallMayFailAndNothingLeaks) {
  start();
  proxy_.reset();
  const auto calls = fake().calls;
  ASSERT_GT(calls.size(), 10U);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    rdma::test::reset_fake();
    fake().fail_at = static_cast<int>(i);
    EXPECT_THROW(start(), core::Error) << calls[i];
    proxy_.reset();
    EXPECT_EQ(fake().open_objects(), 0) << calls[i];
  }
}

TEST_F(RdmaSlotRequestsTest, WhatIsNoEndIsRefused) {
  RdmaSlotEndpoint endpoint(std::make_shared<Adapter>("fake0"), rdma::PathOptions{},
                            memory_.endpoint().view);
  const Bytes own = endpoint.describe();
  for (std::size_t length = 0; length < own.size(); ++length) {
    const auto error = support::thrown_by([&] { endpoint.connect(std::span(own).first(length)); });
    EXPECT_EQ(error.code(), core::ErrorCode::bad_message);
  }
  const auto error = support::thrown_by(
      [&] { endpoint.connect(PeerSlots::describe(own, peer_.view().requests, 4096)); });
  EXPECT_NE(std::string(error.what()).find("the peer's slots have 4096 bytes"), std::string::npos);
}

// ---- The worker's end

class RdmaSlotResponsesTest : public RdmaSlotsTest {
 protected:
  ~RdmaSlotResponsesTest() override { path_.reset(); }

  void start() {
    path_.emplace(std::make_shared<Adapter>("fake0"), rdma::PathOptions{}, view_, engine_);
    path_->connect(PeerSlots::describe(path_->describe(), peer_.view().responses,
                                       peer_.view().layout.response_bytes));
    path_->start();
  }
  kernels::rdma::Result respond(std::uint64_t sequence, const Bytes& payload) {
    std::vector<std::uint8_t> room(payload.size() + 2 * kernels::kSlack);
    std::ranges::copy(std::as_bytes(std::span(payload)),
                      std::as_writable_bytes(std::span(room)).begin() + kernels::kSlack);
    const kernels::Request request(room.data() + kernels::kSlack,
                                   static_cast<std::uint32_t>(payload.size()));
    const kernels::Packet header =
        kernels::answer(kernels::SingleLane{}, kernels::Reverse{}, request,
                        view_.response(sequence), view_.layout.flag_of(sequence));
    return kernels::rdma::write_response(kernels::SingleLane{}, path_->writer().slots, view_,
                                         sequence, header);
  }

  channel::ChannelMemory memory_{0, kSlotDepth, kSlotLongest, -1};
  kernels::ChannelView view_ = memory_.endpoint().view;
  progress::Engine engine_;
  std::optional<RdmaSlotPath> path_;
};

TEST_F(RdmaSlotResponsesTest, EachIsInThePeersSlot) {
  start();
  for (std::uint64_t sequence = 0; sequence < 40; ++sequence) {
    const Bytes payload = random_bytes(static_cast<std::size_t>(sequence * 50), 3);
    ASSERT_EQ(respond(sequence, payload), kernels::rdma::Result::done);
    for (int turns = 0; turns < 3; ++turns) {
      engine_.progress();
      carry_out_all();
    }
    const kernels::Slot slot = peer_.view().response(sequence);
    const std::uint32_t flag = peer_.view().layout.flag_of(sequence);
    EXPECT_FALSE(kernels::is_complete(slot, flag));
    ASSERT_EQ(arrived_, std::vector{htonl(static_cast<std::uint32_t>(sequence % kSlotDepth))});
    arrived_.clear();
    kernels::rdma::set_flag(slot, flag);
    EXPECT_TRUE(kernels::is_complete(slot, flag));
  }
  EXPECT_EQ(path_->failure(), nullptr);
}

TEST_F(RdmaSlotResponsesTest, AFailedWriteEndsThePathAndEveryWait) {
  start();
  ASSERT_EQ(respond(0, random_bytes(100, 1)), kernels::rdma::Result::done);
  engine_.progress();
  fake().finish_send(queue(), IBV_WC_REM_ACCESS_ERR);
  while (!queue().sends.empty()) fake().finish_send(queue(), IBV_WC_WR_FLUSH_ERR);
  for (int turns = 0; turns < 3; ++turns) engine_.progress();
  ASSERT_NE(path_->failure(), nullptr);
  auto result = kernels::rdma::Result::done;
  for (std::uint64_t sequence = 1; sequence < 20 && result == kernels::rdma::Result::done;
       ++sequence) {
    result = respond(sequence, random_bytes(100, 1));
    engine_.progress();
  }
  EXPECT_EQ(result, kernels::rdma::Result::failed);
}

TEST_F(RdmaSlotResponsesTest, AnyCallMayFailAndNothingLeaks) {
  start();
  path_.reset();
  const auto calls = fake().calls;
  ASSERT_GT(calls.size(), 10U);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    rdma::test::reset_fake();
    fake().fail_at = static_cast<int>(i);
    try {
      start();  // moving the queue pair to error, as it ends, may fail
    } catch (const core::Error&) {
    }
    path_.reset();
    EXPECT_EQ(fake().open_objects(), 0) << calls[i];
  }
}

// ---- Both

class RdmaSlotOrderTest : public RdmaSlotRequestsTest {
 protected:
  RdmaSlotOrderTest() {
    auto endpoint = std::make_unique<RdmaSlotEndpoint>(
        std::make_shared<Adapter>("fake0"), rdma::PathOptions{}, memory_.endpoint().view);
    path_.emplace(std::make_shared<Adapter>("fake0"), rdma::PathOptions{}, worker_, engine_);
    endpoint->connect(path_->describe());
    path_->connect(endpoint->describe());
    path_->start();
    proxy_.emplace(server_.requester, memory_.endpoint(), std::move(endpoint));
    server_.requester.set_wakeup(channel::Wakeup::engine);
  }
  ~RdmaSlotOrderTest() override { path_.reset(); }

  /// The worker's back end looks for its next request once.
  void serve() {
    const auto received = kernels::receive<true>(kernels::SingleLane{}, worker_, served_, staging_);
    if (received.arrival == kernels::Arrival::none) return;
    const auto response = kernels::respond(kernels::SingleLane{}, worker_, served_,
                                           kernels::Reverse{}, staging_, received);
    ASSERT_EQ(response.outcome, kernels::Outcome::answered);
    ASSERT_EQ(kernels::rdma::write_response(kernels::SingleLane{}, path_->writer().slots, worker_,
                                            served_++, response.header),
              kernels::rdma::Result::done);
  }

  channel::ChannelMemory worker_memory_{0, kSlotDepth, kSlotLongest, -1};
  kernels::ChannelView worker_ = worker_memory_.endpoint().view;
  kernels::Staging staging_{};
  progress::Engine engine_;
  std::optional<RdmaSlotPath> path_;
  std::uint64_t served_ = 0;
};

TEST_F(RdmaSlotOrderTest, WritesInAnyOrderMakeNoWrongAnswer) {
  constexpr std::size_t kMessages = 4000;
  // Another one with each repetition of --gtest_repeat --gtest_shuffle.
  const auto seed = static_cast<std::uint32_t>(testing::UnitTest::GetInstance()->random_seed());
  rdma::test::FakeFabric fabric(*fake().queue_pairs[0], *fake().queue_pairs[1], seed);
  std::minstd_rand random(seed + 1);
  std::deque<Bytes> asked;
  std::size_t posted = 0;
  std::size_t taken = 0;
  for (std::size_t turns = 0; taken != kMessages; ++turns) {
    ASSERT_LT(turns, 1000 * kMessages);
    if (posted != kMessages && random() % 2 == 0) {
      const std::size_t longest = random() % 2 == 0 ? kernels::kMaxPacketPayload : kSlotLongest;
      const Bytes request =
          random_bytes(random() % (longest + 1), static_cast<std::uint32_t>(posted));
      if (server_.post(request)) {
        asked.push_back(request);
        ++posted;
      }
    }
    server_.engine.progress();
    for (auto steps = random() % 4; steps != 0; --steps) fabric.step();
    ASSERT_NO_FATAL_FAILURE(serve());
    engine_.progress();
    const auto response = server_.take();
    if (!response) continue;
    ASSERT_EQ(*response, support::reversed(asked.front())) << taken;
    asked.pop_front();
    ++taken;
  }
  EXPECT_EQ(proxy_->failure(), nullptr);
  EXPECT_EQ(path_->failure(), nullptr);
}

}  // namespace
}  // namespace offload::comch
