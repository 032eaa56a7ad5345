#include "comch/transport/rdma/data.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "channel/channel_memory.hpp"
#include "tests/comch/transport/recording_handler.hpp"
#include "tests/rdma/fake_fixture.hpp"
#include "tests/support/bytes.hpp"
#include "tests/support/log_capture.hpp"
#include "tests/support/thrown.hpp"

/// A data connection on a fake device: every call can fail, and the test is the peer.
namespace offload::comch {
namespace {

using protocol::DataHeader;
using protocol::kDataHeaderSize;
using rdma::test::fake;
using support::Bytes;
using support::random_bytes;

constexpr std::uint32_t kRdmaDepth = 4;
constexpr std::uint32_t kRdmaLongest = 8192;

RdmaDataEndpoint open_endpoint(std::uint32_t depth, std::shared_ptr<Adapter> adapter = nullptr) {
  if (adapter == nullptr) adapter = std::make_shared<Adapter>("fake0");
  return {std::move(adapter), rdma::PathOptions{}, depth};
}

class RdmaDataTest : public rdma::FakeDeviceTest {
 protected:
  /// Starts the connection as a server has it (no initial credits), or a worker.
  void start(std::uint32_t initial_credits = 0, std::uint32_t max_length = kRdmaLongest,
             const std::shared_ptr<Adapter>& adapter = nullptr) {
    channel_.emplace(0, kRdmaDepth, max_length, -1);
    const kernels::ChannelView view = channel_->endpoint().view;
    handler_.emplace(view);
    RdmaDataEndpoint endpoint = open_endpoint(kRdmaDepth, adapter);
    endpoint.connect(endpoint.descriptor());
    connection_ = endpoint.start(engine_, view, *handler_, initial_credits);
  }
  void post(std::uint64_t sequence, std::uint32_t length) {
    const auto* const in_slot =
        reinterpret_cast<const std::byte*>(channel_->endpoint().view.request(sequence).plain());
    connection_->post_send({sequence, length, 0},
                           length > kernels::kMaxPacketPayload ? in_slot : payload_.data());
  }
  static rdma::test::FakeQueuePair& queue() { return *fake().queue_pairs.back(); }
  /// The device receives so many bytes, which begin with that header.
  void arrive(const DataHeader& header, std::uint32_t bytes) {
    ASSERT_FALSE(queue().receives.empty()) << "no receive is posted";
    header.store(std::bit_cast<std::byte*>(queue().receives.front().pieces[0].addr));
    ibv_wc told{};
    told.byte_len = bytes;
    fake().finish_receive(queue(), told);
  }
  void arrive(const DataHeader& header) { arrive(header, kDataHeaderSize + header.length); }
  void expect_failed(const std::string& slot) {
    engine_.progress();
    ASSERT_TRUE(connection_->failed());
    EXPECT_NE(connection_->failure()->find(slot), std::string::npos) << *connection_->failure();
  }

  support::LogCapture log_;
  Bytes payload_ = random_bytes(kernels::kMaxPacketPayload, 1);
  progress::Engine engine_;
  std::optional<channel::ChannelMemory> channel_;
  std::optional<test::RecordingHandler> handler_;
  std::unique_ptr<DataConnection> connection_;
};

// Each call that can fail, in turn; the fixture sees that nothing is left. Inline messages are done
// without where the device refuses them.
TEST_F(RdmaDataTest, AnyCallMayFailAndNothingLeaks) {
  const auto everything = [this] {
    start(kRdmaDepth);
    connection_.reset();
  };
  everything();
  const auto calls = fake().calls;
  ASSERT_GT(calls.size(), 10U);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    rdma::test::reset_fake();
    fake().fail_at = static_cast<int>(i);
    if (calls[i] == "ibv_create_qp") {
      EXPECT_NO_THROW(everything());
    } else {
      EXPECT_THROW(everything(), core::Error) << calls[i];
    }
    connection_.reset();
    EXPECT_EQ(fake().open_objects(), 0) << calls[i];
  }
}

TEST_F(RdmaDataTest, WhatIsPushedGoesWithOneDoorbellBehindItsReceives) {
  start();
  EXPECT_TRUE(queue().receives.empty()) << "nothing may come unasked";
  post(0, 5);
  post(1, kernels::kMaxPacketPayload);
  post(2, kRdmaLongest);
  EXPECT_TRUE(queue().sends.empty());
  const int before = fake().doorbells;
  engine_.progress();
  EXPECT_EQ(queue().receives.size(), 3U);
  ASSERT_EQ(queue().sends.size(), 3U);
  EXPECT_EQ(fake().doorbells, before + 2) << "one for the receives, one for the sends";
  EXPECT_EQ(queue().sends[0].send.send_flags, unsigned{IBV_SEND_INLINE});
  EXPECT_EQ(queue().sends[2].send.send_flags, unsigned{IBV_SEND_SIGNALED}) << "the last tells all";
  ASSERT_EQ(queue().sends[2].pieces.size(), 2U);
  EXPECT_EQ(queue().sends[2].pieces[1].addr,
            reinterpret_cast<std::uintptr_t>(channel_->endpoint().view.request(2).plain()))
      << "from where it lies";
}

// Each region has keys of its own here.
TEST_F(RdmaDataTest, AMessageIsItsHeaderAndItsContent) {
  std::map<const void*, std::uint32_t> keys;
  fake().make_key = [&](void* address, std::size_t) {
    return keys[address] = 0x100 + static_cast<std::uint32_t>(keys.size());
  };
  start();
  const kernels::ChannelView view = channel_->endpoint().view;
  const ibv_qp_cap& cap = queue().initial.cap;
  EXPECT_EQ(cap.max_send_wr, kRdmaDepth);
  EXPECT_EQ(cap.max_recv_wr, kRdmaDepth);
  EXPECT_EQ(cap.max_send_sge, 2U);
  EXPECT_EQ(cap.max_recv_sge, 2U);
  EXPECT_EQ(queue().initial.send_cq->cqe, static_cast<int>(2 * kRdmaDepth));
  constexpr std::uint32_t kLengths[] = {0, 1, kernels::kMaxPacketPayload, kRdmaLongest};
  for (std::uint32_t i = 0; i < 4; ++i) post(i, kLengths[i]);
  engine_.progress();
  ASSERT_EQ(queue().sends.size(), 4U);
  for (std::uint32_t i = 0; i < 4; ++i) {
    const rdma::test::Posted& sent = queue().sends[i];
    EXPECT_EQ(sent.send.wr_id, i);
    EXPECT_EQ(sent.send.opcode, IBV_WR_SEND);
    ASSERT_EQ(sent.pieces.size(), kLengths[i] == 0 ? 1U : 2U);
    EXPECT_EQ(sent.pieces[0].length, kDataHeaderSize);
    std::array<std::byte, kDataHeaderSize> header{};
    DataHeader{i, kLengths[i], 0}.store(header.data());
    EXPECT_EQ(std::memcmp(std::bit_cast<void*>(sent.pieces[0].addr), header.data(), header.size()),
              0);
    EXPECT_EQ((sent.send.send_flags & IBV_SEND_INLINE) != 0, i < 3);
    if (i < 3) {
      Bytes message = support::copy_of(header);
      message.insert(message.end(), payload_.begin(), payload_.begin() + kLengths[i]);
      EXPECT_EQ(sent.inlined, message);
    }
    const rdma::test::Posted& due = queue().receives[i];
    EXPECT_EQ(due.pieces[0].length, kDataHeaderSize);
    EXPECT_EQ(due.pieces[0].lkey, sent.pieces[0].lkey);
    EXPECT_EQ(due.pieces[1].lkey, keys.at(view.responses));
    EXPECT_EQ(std::bit_cast<std::uint8_t*>(due.pieces[1].addr),
              reinterpret_cast<std::uint8_t*>(view.response(i).plain()));
  }
  EXPECT_EQ(queue().sends[2].pieces[1].lkey, 0U) << "no key is needed for what is copied";
  EXPECT_EQ(queue().sends[3].pieces[1].lkey, keys.at(view.requests));
}

TEST_F(RdmaDataTest, ACompletionIsForAllMessagesBefore) {
  start();
  std::uint64_t next = 0;
  for (const std::size_t count : {3U, 2U, 1U, 4U}) {
    const std::uint64_t first = next;
    for (std::size_t i = 0; i < count; ++i) post(next++, 1);
    engine_.progress();
    ASSERT_EQ(queue().sends.size(), count);
    for (std::size_t i = 0; i < count; ++i) fake().finish_send(queue());
    ASSERT_EQ(fake().completions.size(), 1U);
    engine_.progress();
    EXPECT_EQ(handler_->sent, next);
    for (std::uint64_t sequence = first; sequence < next; ++sequence) arrive({sequence, 0, 0});
    engine_.progress();
    EXPECT_EQ(handler_->taken.size(), next) << "empty ones";
    EXPECT_TRUE(queue().receives.empty());
  }
  EXPECT_EQ(handler_->batches, 4U);
  EXPECT_FALSE(connection_->failed());
}

TEST_F(RdmaDataTest, SleepsArmedOncePerEvent) {
  start(kRdmaDepth);
  while (engine_.progress()) continue;
  rdma::expect_armed_once_per_event(engine_);
}

TEST_F(RdmaDataTest, WithoutInlineAShortMessageIsStaged) {
  start();
  const auto calls = fake().calls;
  connection_.reset();
  rdma::test::reset_fake();
  const auto refused = std::find(calls.begin(), calls.end(), "ibv_create_qp");
  fake().fail_at = static_cast<int>(refused - calls.begin());
  start();
  post(0, 100);
  engine_.progress();
  ASSERT_EQ(queue().sends.size(), 1U);
  ASSERT_EQ(queue().sends[0].pieces.size(), 1U);
  EXPECT_EQ(queue().sends[0].pieces[0].length, kDataHeaderSize + 100);
  EXPECT_EQ(
      std::memcmp(std::bit_cast<std::byte*>(queue().sends[0].pieces[0].addr) + kDataHeaderSize,
                  payload_.data(), 100),
      0);
  EXPECT_EQ(queue().sends[0].send.send_flags, unsigned{IBV_SEND_SIGNALED});
}

TEST_F(RdmaDataTest, AWorkersReceivesAreThereBeforeItIsAsked) {
  start(kRdmaDepth);
  EXPECT_EQ(queue().receives.size(), kRdmaDepth);
  arrive({0, 10, 0});
  engine_.progress();
  EXPECT_EQ(handler_->taken.size(), 1U);
  EXPECT_EQ(queue().receives.size(), kRdmaDepth - 1);
  post(0, 10);
  engine_.progress();
  EXPECT_EQ(queue().receives.size(), kRdmaDepth) << "what the answer lets the server send";
}

TEST_F(RdmaDataTest, AnAnswerIsTakenOnceItsRequestIsSent) {
  start();
  post(0, 10);
  engine_.progress();
  arrive({0, 10, 0});
  engine_.progress();
  EXPECT_TRUE(handler_->taken.empty()) << "the request may still be read by the device";
  fake().finish_send(queue());
  engine_.progress();
  EXPECT_EQ(handler_->sent, 1U);
  EXPECT_EQ(handler_->taken.size(), 1U);
}

TEST_F(RdmaDataTest, APayloadIsFoundWhereItWasReceived) {
  for (const std::uint32_t max_length : {kRdmaLongest, 100U}) {
    start(kRdmaDepth, max_length);
    const auto& pieces = queue().receives.front().pieces;
    EXPECT_EQ(pieces.at(1).length, std::max(max_length, kernels::kMaxBatchContent));
    auto* const at = std::bit_cast<std::byte*>(pieces.at(1).addr);
    const Bytes message = random_bytes(100, 3);
    std::memcpy(at, message.data(), message.size());
    arrive({0, 100, 0});
    engine_.progress();
    EXPECT_EQ(handler_->taken, std::vector<Bytes>{message});
    connection_.reset();
  }
}

TEST_F(RdmaDataTest, ABatchMayBeLongerThanAnyMessage) {
  start(kRdmaDepth, 100);
  const Bytes batch = random_bytes(kernels::kMaxBatchContent, 3);
  auto* const at = std::bit_cast<std::byte*>(queue().receives.front().pieces.at(1).addr);
  std::memcpy(at, batch.data(), batch.size());
  arrive({0, kernels::kMaxBatchContent, 50, 0});
  engine_.progress();
  EXPECT_EQ(handler_->taken, std::vector<Bytes>{batch});
  EXPECT_EQ(handler_->counts, std::vector<std::uint32_t>{50});
}

TEST_F(RdmaDataTest, HeadersThatNoSlotHas) {
  for (const DataHeader& header :
       {DataHeader{0, 101}, DataHeader{0, 3, 2}, DataHeader{0, 1000, 65}}) {
    start(kRdmaDepth, 100);
    arrive(header);
    expect_failed(header.count == 0 ? "over the 100 of the channel" : "which are not a batch");
    EXPECT_TRUE(handler_->taken.empty());
    connection_.reset();
  }
}

TEST_F(RdmaDataTest, LengthsThatLie) {
  struct Case {
    std::uint32_t said;
    std::uint32_t bytes;
  };
  for (const Case& lie :
       {Case{10, 15}, Case{10, 0}, Case{10, kDataHeaderSize + 9}, Case{10, kDataHeaderSize + 11},
        Case{~0U, kDataHeaderSize + 10}, Case{~0U, kDataHeaderSize - 1},
        Case{kRdmaLongest + 1, kDataHeaderSize + kRdmaLongest + 1}}) {
    start(kRdmaDepth);
    arrive({0, lie.said, 0}, lie.bytes);
    expect_failed("bytes for a message that has " + std::to_string(lie.said));
    EXPECT_TRUE(handler_->taken.empty());
    connection_.reset();
  }
}

TEST_F(RdmaDataTest, WhatIsNotDue) {
  start(kRdmaDepth);
  arrive({1, 10, 0});
  expect_failed("not due");
}

TEST_F(RdmaDataTest, AConnectionThatBreaks) {
  start();
  post(0, 10);
  engine_.progress();
  fake().finish_send(queue(), IBV_WC_RETRY_EXC_ERR);
  expect_failed("the connection broke: a status");
  EXPECT_EQ(handler_->sent, 0U);
  post(1, 10);
  engine_.progress();
  EXPECT_TRUE(queue().sends.empty()) << "nothing is carried any more";
}

TEST_F(RdmaDataTest, ADeviceThatTakesNothing) {
  for (const char* const call : {"post_send", "post_recv"}) {
    rdma::test::reset_fake();
    start();
    fake().fail_call = call;
    post(0, 10);
    expect_failed("cannot be posted");
    connection_.reset();
  }
}

TEST_F(RdmaDataTest, ADeviceThatFails) {
  start();
  post(0, 10);
  fake().fail_call = "poll_cq";
  expect_failed("the device has failed");
}

// It completes nothing that is posted.
TEST_F(RdmaDataTest, ADeviceThatWasReset) {
  const auto adapter = std::make_shared<Adapter>("fake0");
  start(0, kRdmaLongest, adapter);
  post(0, 10);
  engine_.progress();
  ASSERT_FALSE(connection_->failed());
  adapter->has_failed = true;
  expect_failed("fake0 has failed");
}

TEST_F(RdmaDataTest, AnEndpointThatIsNone) {
  RdmaDataEndpoint endpoint = open_endpoint(kRdmaDepth);
  const Bytes right = endpoint.descriptor();
  for (std::size_t at = 0; at < right.size(); ++at) {
    Bytes wrong = right;
    wrong[at] ^= std::byte{1};
    EXPECT_THROW(endpoint.connect(wrong), core::Error) << at;
  }
  EXPECT_THROW(endpoint.connect({}), core::Error);
  EXPECT_NO_THROW(endpoint.connect(right));
}

}  // namespace
}  // namespace offload::comch
