#include "comch/transport/rdma/slots.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "channel/channel_memory.hpp"
#include "comch/proxy/worker_proxy.hpp"
#include "kernels/serve.hpp"
#include "kernels/services/reverse.hpp"
#include "tests/channel/channel_fixture.hpp"
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
  /// What the device does with the oldest write: it copies, and says so.
  void carry_out() {
    const rdma::test::Posted& write = queue().sends.front();
    ASSERT_EQ(write.send.opcode, IBV_WR_RDMA_WRITE);
    ASSERT_EQ(write.send.wr.rdma.rkey, kPeerKey);
    auto* to = std::bit_cast<std::byte*>(write.send.wr.rdma.remote_addr);
    for (const ibv_sge& piece : write.pieces) {
      std::memcpy(to, std::bit_cast<const void*>(piece.addr), piece.length);
      to += piece.length;
    }
    fake().finish_send(queue());
  }
  void carry_out_all() {
    while (!queue().sends.empty()) carry_out();
  }

  support::LogCapture log_;
  PeerSlots peer_;
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
    ASSERT_LE(queue().sends.size(), kernels::rdma::kMostSlotWrites);
    EXPECT_EQ(queue().sends.back().send.send_flags, unsigned{IBV_SEND_INLINE | IBV_SEND_SIGNALED});
    carry_out_all();
    answer(sequence++);
    server_.engine.progress();
    const auto response = server_.take();
    ASSERT_TRUE(response.has_value()) << length;
    EXPECT_EQ(*response, Bytes(request.rbegin(), request.rend()));
  }
}

TEST_F(RdmaSlotRequestsTest, TheWorkerSeesNoneBeforeItsLastWrite) {
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
    EXPECT_TRUE(kernels::is_complete(peer_.view().response(sequence),
                                     peer_.view().layout.flag_of(sequence)));
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

}  // namespace
}  // namespace offload::comch
