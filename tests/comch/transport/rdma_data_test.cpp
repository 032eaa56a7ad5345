#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "channel/channel_memory.hpp"
#include "comch/transport/rdma/data.hpp"
#include "tests/rdma/fake_fixture.hpp"
#include "tests/support/bytes.hpp"
#include "tests/support/log_capture.hpp"
#include "tests/support/thrown.hpp"

/// A line on a device that is not there: every call can fail, and the peer is the test's word.
namespace offload::comch {
namespace {

using protocol::DataHeader;
using protocol::kDataHeaderSize;
using rdma::test::fake;
using support::Bytes;
using support::random_bytes;

constexpr std::uint32_t kSlots = 4;
constexpr std::uint32_t kLongest = 4096;

/// Notes what it is told.
class NotingEnd final : public DataHandler {
 public:
  explicit NotingEnd(const kernels::ChannelView& channel) : channel_(channel) {}

  bool collect() override { return false; }
  void on_sent(std::size_t count) override { sent += count; }
  std::byte* room(std::uint64_t sequence) override {
    return reinterpret_cast<std::byte*>(channel_.response(sequence).plain);
  }
  [[nodiscard]] bool is_due(const DataHeader& header) const override {
    return header.sequence == taken.size();
  }
  bool take(const DataHeader&, std::span<const std::byte> payload) override {
    taken.push_back(support::copy_of(payload));
    return true;
  }
  void on_taken() override {}

  std::size_t sent = 0;
  std::vector<Bytes> taken;

 private:
  kernels::ChannelView channel_;
};

RdmaDataEndpoint open_line(std::uint32_t depth) {
  return {std::make_shared<Adapter>("fake0"), rdma::PathOptions{}, depth};
}

class RdmaCarrierTest : public rdma::FakeDeviceTest {
 protected:
  /// As a server has it (none comes unasked), or a worker.
  void carry(std::uint32_t unasked = 0, std::uint32_t max_length = kLongest) {
    channel_.emplace(0, kSlots, max_length, -1);
    const kernels::ChannelView view = channel_->endpoint().view;
    end_.emplace(view);
    RdmaDataEndpoint line = open_line(kSlots);
    line.connect(line.endpoint());
    carrier_ = line.carry(engine_, view, *end_, unasked);
  }
  void push(std::uint64_t sequence, std::uint32_t length) {
    const auto* const in_slot =
        reinterpret_cast<const std::byte*>(channel_->endpoint().view.request(sequence).plain);
    carrier_->push({sequence, length, 0},
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
    ASSERT_TRUE(carrier_->failed());
    EXPECT_NE(carrier_->reason().find(slot), std::string::npos) << carrier_->reason();
  }

  support::LogCapture log_;
  Bytes payload_ = random_bytes(kernels::kMaxPacketPayload, 1);
  progress::Engine engine_;
  std::optional<channel::ChannelMemory> channel_;
  std::optional<NotingEnd> end_;
  std::unique_ptr<DataConnection> carrier_;
};

// Each call that can fail, in turn; the fixture sees that nothing is left. Inline messages are done
// without where the device refuses them.
TEST_F(RdmaCarrierTest, AnyCallMayFailAndNothingLeaks) {
  const auto everything = [this] {
    carry(kSlots);
    carrier_.reset();
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
    carrier_.reset();
    EXPECT_EQ(fake().open_objects(), 0) << calls[i];
  }
}

TEST_F(RdmaCarrierTest, WhatIsPushedGoesWithOneDoorbellBehindItsReceives) {
  carry();
  EXPECT_TRUE(queue().receives.empty()) << "nothing may come unasked";
  push(0, 5);
  push(1, kernels::kMaxPacketPayload);
  push(2, kLongest);
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
            reinterpret_cast<std::uintptr_t>(channel_->endpoint().view.request(2).plain))
      << "from where it lies";
}

TEST_F(RdmaCarrierTest, WithoutInlineAShortMessageIsStaged) {
  carry();
  const auto calls = fake().calls;
  carrier_.reset();
  rdma::test::reset_fake();
  const auto refused = std::find(calls.begin(), calls.end(), "ibv_create_qp");
  fake().fail_at = static_cast<int>(refused - calls.begin());
  carry();
  push(0, 100);
  engine_.progress();
  ASSERT_EQ(queue().sends.size(), 1U);
  ASSERT_EQ(queue().sends[0].pieces.size(), 1U);
  EXPECT_EQ(queue().sends[0].pieces[0].length, kDataHeaderSize + 100);
  EXPECT_EQ(queue().sends[0].send.send_flags, unsigned{IBV_SEND_SIGNALED});
}

TEST_F(RdmaCarrierTest, AWorkersReceivesAreThereBeforeItIsAsked) {
  carry(kSlots);
  EXPECT_EQ(queue().receives.size(), kSlots);
  arrive({0, 10, 0});
  engine_.progress();
  EXPECT_EQ(end_->taken.size(), 1U);
  EXPECT_EQ(queue().receives.size(), kSlots - 1);
  push(0, 10);
  engine_.progress();
  EXPECT_EQ(queue().receives.size(), kSlots) << "what the answer lets the server send";
}

TEST_F(RdmaCarrierTest, AnAnswerIsTakenOnceItsRequestIsSent) {
  carry();
  push(0, 10);
  engine_.progress();
  arrive({0, 10, 0});
  engine_.progress();
  EXPECT_TRUE(end_->taken.empty()) << "the request may still be read by the device";
  fake().finish_send(queue());
  engine_.progress();
  EXPECT_EQ(end_->sent, 1U);
  EXPECT_EQ(end_->taken.size(), 1U);
}

TEST_F(RdmaCarrierTest, APayloadIsFoundWhereItWasReceived) {
  for (const std::uint32_t max_length : {kLongest, 100U}) {
    carry(kSlots, max_length);
    const auto& pieces = queue().receives.front().pieces;
    auto* const at = max_length > kernels::kMaxPacketPayload
                         ? std::bit_cast<std::byte*>(pieces.at(1).addr)
                         : std::bit_cast<std::byte*>(pieces.at(0).addr) + kDataHeaderSize;
    const Bytes message = random_bytes(100, 3);
    std::memcpy(at, message.data(), message.size());
    arrive({0, 100, 0});
    engine_.progress();
    EXPECT_EQ(end_->taken, std::vector<Bytes>{message});
    carrier_.reset();
  }
}

TEST_F(RdmaCarrierTest, LengthsThatLie) {
  struct Case {
    std::uint32_t said;
    std::uint32_t bytes;
  };
  for (const Case& lie :
       {Case{10, 15}, Case{10, 0}, Case{10, kDataHeaderSize + 9}, Case{10, kDataHeaderSize + 11},
        Case{~0U, kDataHeaderSize + 10}, Case{~0U, kDataHeaderSize - 1},
        Case{kLongest + 1, kDataHeaderSize + kLongest + 1}}) {
    carry(kSlots);
    arrive({0, lie.said, 0}, lie.bytes);
    expect_failed("bytes for a message of " + std::to_string(lie.said));
    EXPECT_TRUE(end_->taken.empty());
    carrier_.reset();
  }
}

TEST_F(RdmaCarrierTest, WhatIsNotDue) {
  carry(kSlots);
  arrive({1, 10, 0});
  expect_failed("not due");
}

TEST_F(RdmaCarrierTest, AConnectionThatBreaks) {
  carry();
  push(0, 10);
  engine_.progress();
  fake().finish_send(queue(), IBV_WC_RETRY_EXC_ERR);
  expect_failed("the connection broke: a status");
  EXPECT_EQ(end_->sent, 0U);
  push(1, 10);
  engine_.progress();
  EXPECT_TRUE(queue().sends.empty()) << "nothing is carried any more";
}

TEST_F(RdmaCarrierTest, ADeviceThatTakesNothing) {
  for (const char* const call : {"post_send", "post_recv"}) {
    rdma::test::reset_fake();
    carry();
    fake().fail_call = call;
    push(0, 10);
    expect_failed("cannot be posted");
    carrier_.reset();
  }
}

TEST_F(RdmaCarrierTest, ADeviceThatFails) {
  carry();
  push(0, 10);
  fake().fail_call = "poll_cq";
  expect_failed("the device has failed");
}

TEST_F(RdmaCarrierTest, AnEndpointThatIsNone) {
  RdmaDataEndpoint line = open_line(kSlots);
  const Bytes right = line.endpoint();
  for (std::size_t at = 0; at < right.size(); ++at) {
    Bytes wrong = right;
    wrong[at] ^= std::byte{1};
    EXPECT_THROW(line.connect(wrong), core::Error) << at;
  }
  EXPECT_THROW(line.connect({}), core::Error);
  EXPECT_NO_THROW(line.connect(right));
}

}  // namespace
}  // namespace offload::comch
